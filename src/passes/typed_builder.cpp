#include "passes/typed_builder.h"

#include "passes/infer.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {

fx::CallableRef aten_target(std::string_view schema, bool mutates) {
  return fx::make_ref<ops::AtenTarget>(std::string(schema), mutates);
}

fx::Node* TypedBuilder::call_as(std::string_view schema, std::vector<fx::Argument> args, TensorTypePtr type) {
  auto it = targets_.find(schema);
  if (it == targets_.end()) it = targets_.emplace(std::string(schema), aten_target(schema)).first;
  fx::Node* n = graph_.call_function(it->second, fx::Argument::tuple(args));
  n->set_tensor_type(std::move(type));
  if (origin_ && origin_->meta_if_any()) n->meta().copy_from(*origin_->meta_if_any());
  return n;
}

Result<fx::Node*> TypedBuilder::try_call(std::string_view schema, std::vector<fx::Argument> args) {
  fx::Node* n = call_as(schema, std::move(args), nullptr);
  Result<TensorTypePtr> type = infer(*n, env_);
  if (!type) {
    graph_.erase_node(n);
    return type.failure();
  }
  n->set_tensor_type(std::move(*type));
  return n;
}

fx::Node* TypedBuilder::call(std::string_view schema, std::vector<fx::Argument> args) {
  Result<fx::Node*> n = try_call(schema, std::move(args));
  FXJIT_CHECK(n.ok(), "a pass makes ", schema, ": ", n.reason());
  return *n;
}

fx::Node* TypedBuilder::cast(fx::Node* x, DType to) {
  if (x->tensor_type()->dtype == to) return x;
  return call("aten::to.dtype", {x, to, false, false, fx::Argument()});
}

fx::Node* TypedBuilder::clone(fx::Node* x, DType to) {
  return call("aten::to.dtype", {x, to, false, true, fx::Argument()});
}

fx::Argument TypedBuilder::last_dims(const fx::Node* x, size_t dims) {
  auto rank = static_cast<int64_t>(x->tensor_type()->rank());
  std::vector<fx::Argument> list;
  for (int64_t d = rank - static_cast<int64_t>(dims); d < rank; ++d) list.emplace_back(d);
  return fx::Argument::list(list);
}

}  // namespace fxjit::inline v0::passes
