// Typed graphs by hand, for tests of the passes.
#pragma once

#include <string>
#include <vector>

#include "passes/pass.h"
#include "passes/typed_builder.h"
#include "passes/typed_text.h"

namespace fxjit::inline v0::passes {

// An ATen call as the recorder imports it: in-place operators are impure, as are random ones.
fx::CallableRef imported_target(const std::string& schema);

class Program {
 public:
  Program() : graph(fx::Graph::create()), build(*graph, env) {}

  // A row-major input; with `dynamic` each size is a symbol. `strides` are numbers where given.
  fx::Node* input(DType dtype, std::vector<int64_t> sizes, bool dynamic = false, std::vector<int64_t> strides = {});
  fx::Node* f32(std::vector<int64_t> sizes, bool dynamic = false) { return input(DType::Float32, sizes, dynamic); }

  fx::Node* call(std::string_view schema, std::vector<fx::Argument> args) {
    return build.call(schema, std::move(args));
  }
  // An in-place, random or otherwise impure call of known result type.
  fx::Node* impure(const std::string& schema, std::vector<fx::Argument> args, TensorTypePtr type);
  // In place: its result is of self's type.
  fx::Node* inplace(const std::string& schema, std::vector<fx::Argument> args);
  // A call that no pass knows anything about, of the operand's type: it negates.
  fx::Node* opaque(fx::Node* x);
  // A call without a rule of which is known that it neither aliases nor raises: it reverses the elements.
  fx::Node* flip(fx::Node* x) { return impure("aten::flip", {x}, x->tensor_type()); }
  void output(std::vector<fx::Argument> values) { graph->output(fx::Argument::tuple(values)); }

  PassContext context() { return PassContext{graph, env, options, {}}; }
  std::string print() const { return print_typed(*graph, env); }
  size_t count(std::string_view schema) const;
  size_t kernels() const;

  ShapeEnv env;
  Options options;
  fx::GraphPtr graph;
  TypedBuilder build;

 private:
  int32_t inputs_ = 0;
};

}  // namespace fxjit::inline v0::passes
