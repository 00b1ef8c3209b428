#include "runtime/libs/dnnl/library.h"

#include <dlfcn.h>

#include <mutex>
#include <vector>

#include "runtime/libs/dnnl/linear.h"

#ifndef FXJIT_DNNL_LIBRARY
#define FXJIT_DNNL_LIBRARY ""
#endif

namespace fxjit_dnnl {
namespace {

// The one setting that must precede the first use; a lock because bindings may be loaded on any thread.
struct Path {
  std::mutex mutex;
  std::string preferred;
  bool used = false;
};

Path& path() {
  static Path* p = new Path;
  return *p;
}

std::vector<std::string> candidates() {
  std::vector<std::string> out;
  {
    std::lock_guard lock(path().mutex);
    path().used = true;
    out.push_back(path().preferred);
  }
  out.push_back(FXJIT_DNNL_LIBRARY);
  out.push_back("libdnnl.so.3");
  std::erase(out, "");
  return out;
}

// Fills the table from an opened library; false with a reason if it is not what we need.
bool fill(Library& lib, void* handle, std::string* why) {
#define FXJIT_DNNL_FIND(name)                                            \
  lib.name = reinterpret_cast<decltype(lib.name)>(dlsym(handle, #name)); \
  if (!lib.name) return *why = "it has no function " #name, false;
  FXJIT_DNNL_FUNCTIONS(FXJIT_DNNL_FIND)
#undef FXJIT_DNNL_FIND
  const dnnl_version_t* v = lib.dnnl_version();
  lib.version = 100 * v->major + v->minor;
  if (lib.version >= 301 && lib.version < 400) return true;
  *why = "its version is " + std::to_string(v->major) + "." + std::to_string(v->minor) + ", needed is 3.1 to 3.x";
  return false;
}

Library open() {
  Library lib;
  lib.problem = "oneDNN is not available";
  for (const std::string& name : candidates()) {
    std::string why;
    // RTLD_LOCAL: torch carries a oneDNN of its own, whose symbols must not be bound to this one.
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* error = dlerror();
      why = error ? error : "unknown error";
    } else if (fill(lib, handle, &why)) {
      if (lib.dnnl_engine_create(&lib.engine, dnnl_cpu, 0) == dnnl_success) {
        lib.problem.clear();
        return lib;
      }
      why = "it has no CPU engine";
    }
    lib.problem += "; " + name + ": " + why;
    lib.version = 0;
    if (handle) dlclose(handle);
  }
  return lib;
}

}  // namespace

const Library& library() {
  static const Library* lib = new Library(open());  // leaked: see the header
  return *lib;
}

}  // namespace fxjit_dnnl

extern "C" {

int fxjit_dnnl_set_path(const char* preferred) {
  auto& p = fxjit_dnnl::path();
  std::lock_guard lock(p.mutex);
  if (p.used) return 0;
  p.preferred = preferred ? preferred : "";
  return 1;
}

const char* fxjit_dnnl_problem(void) {
  const auto& lib = fxjit_dnnl::library();
  return lib.problem.empty() ? nullptr : lib.problem.c_str();
}

int fxjit_dnnl_version(void) { return fxjit_dnnl::library().version; }

}  // extern "C"
