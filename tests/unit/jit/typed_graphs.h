// Typed graphs with KernelCalls, made by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/forward/specialised_plan.h"
#include "fxjit/fx/graph.h"
#include "kernel/kernel_call.h"

namespace fxjit::test {

// Builds a graph, its ShapeEnv and the inputs of its forward.
struct TypedGraph {
  fx::GraphPtr graph = fx::Graph::create();
  std::shared_ptr<ShapeEnv> env = std::make_shared<ShapeEnv>();
  codegen::ForwardInputs inputs;

  std::vector<Dim> constants(std::initializer_list<int64_t> values) {
    std::vector<Dim> dims;
    for (int64_t v : values) dims.push_back(env->constant(v));
    return dims;
  }
  Dim size(int32_t input, int32_t dim, int64_t hint) { return env->symbol({SymSource::Size, input, dim}, hint); }

  TensorTypePtr type(DType t, std::vector<Dim> sizes, std::vector<Dim> strides = {}) {
    auto result = std::make_shared<TensorType>();
    result->dtype = t;
    result->strides = strides.empty() ? contiguous_strides(*env, sizes) : std::move(strides);
    result->sizes = std::move(sizes);
    return result;
  }

  fx::Node* input(const char* name, TensorTypePtr type, uint64_t key_set = 0x8001) {
    fx::Node* n = graph->placeholder(name);
    n->set_tensor_type(type);
    codegen::ForwardInput i;
    i.node = n;
    i.type = std::move(type);
    i.key_set = key_set;
    inputs.inputs.push_back(std::move(i));
    return n;
  }

  fx::Node* number(const char* name, std::optional<uint64_t> baked = {}) {
    codegen::ForwardInput i;
    i.kind = codegen::ForwardInput::Number;
    i.baked = baked;
    fx::Node* n = graph->placeholder(name);
    i.node = n;
    inputs.inputs.push_back(i);
    return n;
  }

  // An elementwise kernel of one axis: float inputs, float outputs, all with unit stride; its
  // expressions do not matter here, since the tests bring the function that runs.
  fx::Ref<kernel::KernelCall> kernel(const std::string& name, int inputs_count, std::vector<TensorTypePtr> results,
                                     Dim extent) {
    auto call = fx::make_ref<kernel::KernelCall>(name);
    call->kernel.axes = {kernel::Axis{}};
    call->extents = {extent};
    for (int i = 0; i < inputs_count; ++i) add_buffer(*call, i, -1, false);
    for (int i = 0; i < static_cast<int>(results.size()); ++i) add_buffer(*call, -1, i, true);
    call->results = std::move(results);
    return call;
  }
  void add_buffer(kernel::KernelCall& call, int operand, int result, bool output) {
    const std::vector<kernel::StrideClass> unit(call.kernel.axes.size(), kernel::StrideClass::Unit);
    call.kernel.buffers.push_back({DType::Float32, output, unit});
    const std::vector<Dim> strides(call.kernel.axes.size(), env->constant(1));
    call.buffers.push_back({operand, result, env->constant(0), strides});
  }

  fx::Node* launch(const fx::Ref<kernel::KernelCall>& call, std::vector<fx::Argument> args,
                   codegen::KernelChoice choice = {}) {
    fx::Node* n = graph->call_function(call, fx::Argument::tuple(args));
    if (call->results.size() == 1) n->set_tensor_type(call->results[0]);
    inputs.kernels[n] = choice;
    return n;
  }
  fx::Node* part(fx::Node* tuple, int index, TensorTypePtr type) {
    fx::Node* n = graph->call_function(fx::builtin_function("_operator.getitem"), fx::Argument::tuple({tuple, index}));
    n->set_tensor_type(std::move(type));
    return n;
  }
  fx::Node* aten(const char* name, std::vector<fx::Argument> args, TensorTypePtr type) {
    auto f = fx::make_function(name, [](std::span<const fx::Value>, const fx::Value&) -> fx::Value { return {}; });
    fx::Node* n = graph->call_function(f, fx::Argument::tuple(args));
    n->set_tensor_type(std::move(type));
    return n;
  }
};

}  // namespace fxjit::test
