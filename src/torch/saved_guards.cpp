#include "torch/saved_guards.h"

#include <map>

#include "fxjit/errors.h"
#include "support/format.h"
#include "torch/method_resolver.h"

namespace fxjit::inline v0::torch_ {
namespace {

using fx::Value;

constexpr const char* kCheck = "fxjit.check_guards";

// Values of expressions as fxjit/fx/_guards.py makes them.
struct Evaluator {
  std::span<const Value> inputs;                    // of the placeholders, then of the attributes
  const std::map<std::string, size_t>& attributes;  // path → index

  Value operator()(const Value& e) const {
    const std::string_view kind = e[0].as_str();
    if (kind == "constant") return e[1];
    if (kind == "input") return inputs[static_cast<size_t>(e[1].as_int())];
    if (kind == "attribute") return inputs[attributes.at(std::string(e[1].as_str()))];
    if (kind == "tuple") return Value::tuple(all(e[1]));
    if (kind == "size") return method("size", {(*this)(e[1]), e[2]}, {});
    if (kind == "read") return call(*fx::builtin_function("builtins.getattr"), {(*this)(e[1]), e[2]}, {});
    if (kind == "method") {
      std::vector<Value> args = all(e[3]);
      args.insert(args.begin(), (*this)(e[1]));
      return method(e[2].as_str(), args, e[4]);
    }
    if (kind == "call") return call(e[1], all(e[2]), e[3]);
    throw ValueError("a guard holds a " + std::string(kind));
  }

  std::vector<Value> all(const Value& expressions) const {
    std::vector<Value> out;
    for (const Value& e : expressions.items()) out.push_back((*this)(e));
    return out;
  }

  static Value method(std::string_view name, const std::vector<Value>& args, const Value& kwargs) {
    if (auto v = method_resolver().call_method(name, args, kwargs)) return *std::move(v);
    throw TypeError("no method " + std::string(name));
  }

  static Value call(const Value& function, const std::vector<Value>& args, const Value& kwargs) {
    const auto f = fx::ref_cast<fx::Callable>(fx::ObjectRef(function.object_or_null()));
    if (!f) throw TypeError("a guard calls " + function.repr());
    return call(*f, args, kwargs);
  }

  static Value call(const fx::Callable& f, const std::vector<Value>& args, const Value& kwargs) {
    const std::string_view name = f.qualified_name();
    if (name == "_operator.is_" || name == "_operator:is_") return Value(args.at(0) == args.at(1));
    if (name == "_operator.not_" || name == "_operator:not_") return Value(!truth(args.at(0)));
    if (auto v = method_resolver().call_function(f, args, kwargs)) return *std::move(v);
    return f.call(args, kwargs);
  }

  static bool truth(const Value& v) {
    if (v.is_none()) return false;
    return v.is_int() ? v.as_int() != 0 : v.as_bool();
  }
};

std::string failure(const Value& guard, const std::string& why) {
  std::string text = "this call does not fit the graph, which was traced with";
  for (const fx::DictEntry& e : guard[2].entries())
    text += support::concat(" ", e.key.as_str(), " = ", e.value.as_str(), ";");
  if (!guard[1].is_none()) text += support::concat(" a decision at ", guard[1][0].as_str(), ":", guard[1][1].as_int());
  return text + (why.empty() ? " comes out differently" : " cannot be checked: " + why) +
         "; trace it with other example_inputs";
}

void find_attributes(const Value& e, std::map<std::string, size_t>& found) {
  if (!e.is(fx::ArgumentKind::Tuple) || e.size() == 0) return;
  if (e[0].is_str() && e[0].as_str() == "attribute") found.emplace(e[1].as_str(), 0);
  if (e[0].is_str() && e[0].as_str() == "constant") return;
  for (const Value& part : e.items()) find_attributes(part, found);
}

}  // namespace

void add_guards(fx::Graph& graph, const Value& guards) {
  std::map<std::string, size_t> attributes;
  for (const Value& guard : guards.items()) find_attributes(guard[0], attributes);
  std::vector<Value> inputs;
  fx::Node* first = nullptr;
  for (fx::Node* n : graph.nodes()) {
    if (n->op() == fx::Opcode::Placeholder)
      inputs.emplace_back(n);
    else if (!first)
      first = n;
  }
  const fx::InsertScope scope = graph.inserting_before(first);
  for (auto& [path, index] : attributes) {
    index = inputs.size();
    inputs.emplace_back(graph.get_attr(path));
  }
  auto check = [guards, attributes](std::span<const Value> values, const Value&) -> Value {
    for (const Value& guard : guards.items()) {
      bool holds = false;
      std::string why;
      try {
        holds = Evaluator::truth(Evaluator{values, attributes}(guard[0]));
      } catch (const std::exception& e) {
        why = e.what();
      }
      if (!holds) throw AssertionError(failure(guard, why));
    }
    return {};
  };
  graph.call_function(fx::make_function(kCheck, check, /*impure=*/true), Value::tuple(inputs));
}

bool has_guards(const fx::Graph& graph) {
  for (const fx::Node* n : graph.nodes())
    if (n->op() == fx::Opcode::CallFunction && n->callable().qualified_name() == kCheck) return true;
  return false;
}

}  // namespace fxjit::inline v0::torch_
