// What a call_function node calls.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fxjit/fx/argument.h"

namespace fxjit::inline v0::fx {

class TracerBase;

enum class ParameterKind : uint8_t { Positional, KeywordOnly, VarPositional, VarKeyword };

struct Parameter {
  std::string name;  // without stars
  ParameterKind kind = ParameterKind::Positional;
  std::optional<Argument> default_value = {};  // empty: there is no default, which is not a default of None
  Argument annotation = {};
};

using Signature = std::vector<Parameter>;

class FXJIT_API Callable : public Object {
 public:
  ObjectKind object_kind() const final { return ObjectKind::Callable; }
  std::string type_name() const override { return "function"; }
  void print(std::string& out) const override;

  // Module and name, "_operator.add", "__main__.sigmoid_lowp"; stable while the object lives.
  virtual std::string_view qualified_name() const = 0;
  // What a node that calls it is named after; by default the part behind the last dot. (`__name__` in Python)
  virtual std::string_view base_name() const;
  // As a printed graph shows it: "operator.add", "builtins.getattr", "torch.relu".
  virtual std::string pretty_name() const;

  virtual std::optional<Signature> signature() const { return std::nullopt; }

  // Runs it on values; `kwargs` is a Dict with Str keys, or None. NotImplementedError by default.
  virtual Value call(std::span<const Value> args, const Value& kwargs) const;

  // True if a call must stay though nobody uses its result.
  virtual bool is_impure(const Argument& args, const Argument& kwargs, bool impure_random) const;

  // A composite keeps its body: trace_body records the body's operations through `tracer` and returns the nodes that
  // hold its result (any structure of them).
  virtual bool is_composite() const { return false; }
  virtual Argument trace_body(TracerBase& tracer, std::span<const Argument> args, const Argument& kwargs) const;
  // True if a composite must never be inlined (wrap(fn, leaf=True)).
  virtual bool always_leaf() const { return false; }
};

using CallableRef = Ref<Callable>;

// The functions that operators on Proxies record: operator.add, …, builtins.getattr. They are looked up by Python's
// qualified name ("_operator.add", "builtins.getattr") and compute on numbers; null for an unknown name.
FXJIT_API CallableRef builtin_function(std::string_view qualified_name);

// A callable from C++ code. `impure` keeps its calls from being removed.
FXJIT_API CallableRef make_function(std::string qualified_name,
                                    std::function<Value(std::span<const Value> args, const Value& kwargs)> body,
                                    bool impure = false);

}  // namespace fxjit::inline v0::fx
