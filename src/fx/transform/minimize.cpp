#include "fxjit/fx/minimize.h"

#include <exception>
#include <unordered_map>

#include "fxjit/errors.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

using support::concat;

namespace {

class Search {
 public:
  Search(GraphModule& module, const RunPart& run_a, const RunPart& run_b, const EqualValues& equal, bool find_all)
      : module_(module), run_a_(run_a), run_b_(run_b), equal_(equal), find_all_(find_all) {}

  // The values of all nodes that a part can read, by `run_a`, node by node.
  void fill(std::span<const Value> inputs) {
    size_t next = 0;
    for (Node* n : module_.graph().nodes()) {
      if (n->op() == Opcode::Placeholder) {
        if (next == inputs.size()) throw ValueError(concat("minimize: no input was given for ", n->name()));
        values_[n] = inputs[next++];
      } else if (is_call(*n)) {
        calls_.push_back(n);
        const Part part = extract_part(module_, {&n, 1});
        values_[n] = run_a_(*part.module, inputs_of(part))[0];
      }
    }
    if (next != inputs.size())
      throw ValueError(concat("minimize: ", inputs.size(), " inputs for ", next, " placeholders"));
  }

  void sequential() {
    for (size_t i = 0; i < calls_.size() && more(); ++i) {
      if (differs(i, i + 1)) culprits_.push_back(calls_[i]);
    }
  }

  void accumulate() {
    for (size_t i = 0; i < calls_.size() && more(); ++i) {
      if (differs(0, i + 1)) culprits_.push_back(calls_[i]);
    }
  }

  void binary(size_t begin, size_t end) {
    if (begin == end || !more() || !differs(begin, end)) return;
    if (end - begin == 1) {
      culprits_.push_back(calls_[begin]);
      return;
    }
    const size_t found = culprits_.size(), middle = begin + (end - begin) / 2;
    binary(begin, middle);
    binary(middle, end);
    // The halves agree by themselves: it takes all of them.
    if (culprits_.size() == found) culprits_.insert(culprits_.end(), calls_.begin() + begin, calls_.begin() + end);
  }

  size_t calls() const { return calls_.size(); }
  MinimizeResult result() && { return {std::move(culprits_), std::move(log_)}; }

 private:
  static bool is_call(const Node& n) {
    return n.op() == Opcode::CallFunction || n.op() == Opcode::CallMethod || n.op() == Opcode::CallModule;
  }

  bool more() const { return find_all_ || culprits_.empty(); }

  std::vector<Value> inputs_of(const Part& part) const {
    std::vector<Value> inputs;
    for (const Node* n : part.inputs) inputs.push_back(values_.at(n));
    return inputs;
  }

  bool differs(size_t begin, size_t end) {
    const Part part = extract_part(module_, std::span(calls_).subspan(begin, end - begin));
    std::string line =
        concat(calls_[begin]->name(), end - begin > 1 ? concat(" … ", calls_[end - 1]->name()) : "", ": ");
    const std::vector<Value> inputs = inputs_of(part);
    const Value a = run_a_(*part.module, inputs);
    bool differ = false;
    try {
      const Value b = run_b_(*part.module, inputs);
      for (size_t i = 0; i < part.outputs.size() && !differ; ++i) {
        differ = !equal_(a[i], b[i]);
        if (differ) line += concat(part.outputs[i]->name(), " differs");
      }
    } catch (const std::exception& e) {
      differ = true;
      line += e.what();
    }
    log_.push_back(line + (differ ? "" : "equal"));
    return differ;
  }

  GraphModule& module_;
  const RunPart &run_a_, &run_b_;
  const EqualValues& equal_;
  bool find_all_;
  std::vector<Node*> calls_;
  std::unordered_map<const Node*, Value> values_;
  std::vector<Node*> culprits_;
  std::vector<std::string> log_;
};

}  // namespace

MinimizeResult minimize(GraphModule& module, std::span<const Value> inputs, const RunPart& run_a, const RunPart& run_b,
                        const EqualValues& equal, const MinimizeOptions& options) {
  if (options.find_all && options.method == MinimizeMethod::Accumulate) {
    throw ValueError("minimize: find_all does not go with Accumulate, where all that follows a difference differs");
  }
  Search search(module, run_a, run_b, equal, options.find_all);
  search.fill(inputs);
  switch (options.method) {
    case MinimizeMethod::Sequential:
      search.sequential();
      break;
    case MinimizeMethod::Binary:
      search.binary(0, search.calls());
      break;
    case MinimizeMethod::Accumulate:
      search.accumulate();
      break;
  }
  return std::move(search).result();
}

}  // namespace fxjit::inline v0::fx
