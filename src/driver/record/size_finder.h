// Integers that differ between two runs of a program, as expressions over sizes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "driver/record/example_run.h"
#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::driver {

class SizeFinder {
 public:
  using NodeOf = std::function<fx::Node*(torch_::ValueId)>;
  // `node_of`: the node that holds a value now.
  SizeFinder(const ExampleRun& a, const ExampleRun& b, fx::Graph& graph, NodeOf node_of)
      : a_(a), b_(b), graph_(graph), node_of_(std::move(node_of)) {}

  // An expression that is `v` in the first run and `w` in the second, its nodes appended to the graph: a size of an
  // operand or input, a product of sizes of an operand, or a size of an input times, by or plus a constant; in this
  // order. `ambiguous` where two sizes of one input explain it alike.
  std::optional<fx::Argument> find(int64_t v, int64_t w, std::span<const torch_::ValueId> operands, bool* ambiguous);

 private:
  struct Size {
    torch_::ValueId value;
    int64_t dim, v, w;
  };
  void sizes_of(torch_::ValueId value, std::vector<Size>& out) const;
  std::optional<fx::Argument> equal_size(std::span<const Size> sizes, int64_t v, int64_t w, bool* ambiguous);
  std::optional<fx::Argument> product(std::span<const Size> sizes, int64_t v, int64_t w);
  std::optional<fx::Argument> with_constant(std::span<const Size> sizes, int64_t v, int64_t w);
  fx::Argument node(const Size& s);
  fx::Argument compute(const char* function, const fx::Argument& x, const fx::Argument& y);

  const ExampleRun& a_;
  const ExampleRun& b_;
  fx::Graph& graph_;
  NodeOf node_of_;
  std::map<std::pair<torch_::ValueId, int64_t>, fx::Node*> nodes_;
};

}  // namespace fxjit::inline v0::driver
