#include "fx/bind.h"

#include "support/errors.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

// Keyword arguments that are left, in order.
class Keywords {
 public:
  explicit Keywords(const Argument& kwargs) {
    if (kwargs.is_none()) return;
    entries_.assign(kwargs.entries().begin(), kwargs.entries().end());
  }
  std::optional<Argument> take(std::string_view name) {
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->key.as_str() != name) continue;
      Argument value = std::move(it->value);
      entries_.erase(it);
      return value;
    }
    return std::nullopt;
  }
  Argument take_all() { return Argument::dict(std::exchange(entries_, {})); }
  void expect_none_left() const {
    if (!entries_.empty()) throw TypeError("forward() got an unexpected keyword argument " + entries_[0].key.repr());
  }

 private:
  std::vector<DictEntry> entries_;
};

}  // namespace

std::vector<std::pair<Node*, Argument>> bind_arguments(const Graph& graph, std::span<const Argument> args,
                                                       const Argument& kwargs, FunctionRef<bool(const Node*)> wanted) {
  std::vector<std::pair<Node*, Argument>> bound;
  Keywords keywords(kwargs);
  size_t next = 0;
  for (Node* n : graph.nodes()) {
    if (n->op() != Opcode::Placeholder || (wanted && !wanted(n))) continue;
    const std::string_view target = n->target_str();
    if (target.starts_with("**")) {
      bound.emplace_back(n, keywords.take_all());
    } else if (target.starts_with('*')) {
      bound.emplace_back(n, Argument::tuple(args.subspan(std::min(next, args.size()))));
      next = args.size();
    } else if (next < args.size()) {
      if (keywords.take(target)) throw TypeError(concat("forward() got multiple values for argument '", target, "'"));
      bound.emplace_back(n, args[next++]);
    } else if (auto value = keywords.take(target)) {
      bound.emplace_back(n, std::move(*value));
    } else if (n->args().size() > 0) {
      bound.emplace_back(n, n->arg(0));
    } else {
      throw RuntimeError(concat("Expected positional argument for parameter ", target, ", but one was not passed in!"));
    }
  }
  if (next < args.size()) {
    throw TypeError(concat("forward() takes ", next,
                           next == 1 ? " positional argument but " : " positional arguments but ", args.size(),
                           args.size() == 1 ? " was given" : " were given"));
  }
  keywords.expect_none_left();
  return bound;
}

}  // namespace fxjit::inline v0::fx
