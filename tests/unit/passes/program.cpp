#include "program.h"

#include "kernel/kernel_call.h"
#include "passes/alias.h"

namespace fxjit::inline v0::passes {
namespace {

class ImportedTarget final : public fx::Callable {
 public:
  explicit ImportedTarget(std::string schema) : schema_(std::move(schema)) {}
  std::string_view qualified_name() const override { return schema_; }
  std::string_view base_name() const override { return ops::operator_name(schema_); }
  bool is_impure(const fx::Argument&, const fx::Argument&, bool impure_random) const override {
    if (schema_ == "aten::rand_like") return impure_random;
    return is_inplace(schema_) || schema_ == "test::effect";
  }

 private:
  std::string schema_;
};

}  // namespace

fx::CallableRef imported_target(const std::string& schema) { return fx::make_ref<ImportedTarget>(schema); }

fx::Node* Program::input(DType dtype, std::vector<int64_t> sizes, bool dynamic, std::vector<int64_t> strides) {
  auto type = std::make_shared<TensorType>();
  type->dtype = dtype;
  for (size_t d = 0; d < sizes.size(); ++d) {
    SymSource source{SymSource::Size, inputs_, static_cast<int32_t>(d)};
    type->sizes.push_back(dynamic ? env.symbol(source, sizes[d]) : env.constant(sizes[d]));
  }
  type->strides = contiguous_strides(env, type->sizes);
  for (size_t d = 0; d < strides.size(); ++d) type->strides[d] = env.constant(strides[d]);
  fx::Node* n = graph->placeholder("x" + std::to_string(inputs_++));
  n->set_tensor_type(type);
  return n;
}

fx::Node* Program::impure(const std::string& schema, std::vector<fx::Argument> args, TensorTypePtr type) {
  fx::Node* n = graph->call_function(imported_target(schema), fx::Argument::tuple(args));
  n->set_tensor_type(std::move(type));
  return n;
}

fx::Node* Program::inplace(const std::string& schema, std::vector<fx::Argument> args) {
  TensorTypePtr type = args[0].as_node()->tensor_type();
  return impure(schema, std::move(args), std::move(type));
}

fx::Node* Program::opaque(fx::Node* x) { return impure("aten::opaque_negation", {x}, x->tensor_type()); }

size_t Program::count(std::string_view schema) const {
  size_t n = 0;
  for (const fx::Node* node : graph->nodes()) n += is_call(*node, schema);
  return n;
}

size_t Program::kernels() const {
  size_t n = 0;
  for (const fx::Node* node : graph->nodes())
    n += node->op() == fx::Opcode::CallFunction && dynamic_cast<const kernel::KernelCall*>(&node->callable());
  return n;
}

}  // namespace fxjit::inline v0::passes
