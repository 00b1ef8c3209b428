// The extension module. One register function per bind_<thing>.cpp.
#include <nanobind/nanobind.h>

#include "fxjit/version.h"

namespace fxjit::inline v0::python {
void bind_fx(nanobind::module_& m);
void bind_compile(nanobind::module_& m);
void bind_fx_rewrite(nanobind::module_& m);
void bind_draw(nanobind::module_& m);
void bind_fx_split(nanobind::module_& m);
void bind_fx_partition(nanobind::module_& m);
}  // namespace fxjit::inline v0::python

NB_MODULE(_C, m) {
  // A compiled callable in a global lives until the process ends: that is no leak to tell the user of.
  nanobind::set_leak_warnings(false);
  m.attr("__version__") = FXJIT_VERSION;
  fxjit::python::bind_fx(m);
  fxjit::python::bind_compile(m);
  fxjit::python::bind_fx_rewrite(m);
  fxjit::python::bind_draw(m);
  fxjit::python::bind_fx_split(m);
  fxjit::python::bind_fx_partition(m);
}
