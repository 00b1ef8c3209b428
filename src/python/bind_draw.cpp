// Pictures of graphs, and passes over graphs that the C++ core has.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <unordered_map>

#include "fxjit/fx/draw.h"
#include "fxjit/fx/transform.h"
#include "python/fx_graph.h"

namespace nb = nanobind;

namespace fxjit::inline v0::python {
namespace {

PyGraph* graph_object(nb::handle graph) {
  if (!is_graph(graph.ptr())) throw nb::type_error("expected a fxjit.fx.Graph");
  auto* g = reinterpret_cast<PyGraph*>(graph.ptr());
  graph_of(g);
  return g;
}

// rows: name of a node → (class, further lines, hidden).
fx::DrawOptions draw_options(std::string title, nb::dict rows) {
  auto looks = std::make_shared<std::unordered_map<std::string, fx::DrawNode>>();
  for (auto [name, row] : rows) {
    const int drawn_as = nb::cast<int>(row[0]);
    if (drawn_as < 0 || drawn_as > static_cast<int>(fx::DrawClass::Host)) throw nb::value_error("no such class");
    (*looks)[nb::cast<std::string>(name)] = {static_cast<fx::DrawClass>(drawn_as), nb::cast<std::string>(row[1]),
                                             nb::cast<bool>(row[2])};
  }
  return {std::move(title), [looks](const fx::Node& n) {
            const auto it = looks->find(std::string(n.name()));
            return it == looks->end() ? fx::DrawNode{} : it->second;
          }};
}

}  // namespace

void bind_draw(nb::module_& m) {
  m.def(
      "draw_graph",
      [](nb::handle graph, std::string_view format, std::string title, nb::dict rows) {
        const fx::Graph& g = graph_of(graph_object(graph));
        const fx::DrawOptions options = draw_options(std::move(title), rows);
        if (format == "dot") return fx::draw_dot(g, options);
        if (format == "svg") return fx::draw_svg(g, options);
        throw nb::value_error("the formats are dot and svg");
      },
      "draw_graph(graph, format, title, rows): the text of a picture.");
  m.def(
      "eliminate_common_subexpressions",
      [](nb::handle graph, nb::object banned) {
        PyGraph* g = graph_object(graph);
        const OwnerScope owner(g);
        fx::Graph& core = graph_of(g);
        const auto ask = [&](const fx::Node& n) {
          nb::object node = nb::steal(wrap_node(g, const_cast<fx::Node*>(&n)));
          return nb::cast<bool>(banned(node));
        };
        if (banned.is_none()) return fx::eliminate_common_subexpressions(core);
        return fx::eliminate_common_subexpressions(core, ask);
      },
      nb::arg("graph"), nb::arg("banned").none(),
      "eliminate_common_subexpressions(graph, banned): how many nodes were replaced by an equal earlier one.");
}

}  // namespace fxjit::inline v0::python
