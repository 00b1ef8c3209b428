#include "driver/generic_form.h"

#include "fxjit/fx/interpreter.h"
#include "jit/kernel_cache.h"
#include "runtime/frame.h"
#include "support/errors.h"
#include "support/fault.h"
#include "torch/frame_error.h"
#include "torch/method_resolver.h"

namespace fxjit::inline v0::driver {
namespace {

// In C++ a slot holds a boxed value.
fx::Value* value_in(fxjit_frame* frame, int32_t slot) { return static_cast<fx::Value*>(frame->slots[slot]); }

}  // namespace

// What frame->program points to.
struct GenericForm::Call {
  const GenericForm& form;
  fx::Interpreter& callees;  // its functions for single nodes; it holds no values

  fx::Value load(fxjit_frame* frame, const fx::Argument& a) const {
    return fx::map_arg(a, [&](fx::Node* n) -> fx::Argument {
      const fx::Value* v = value_in(frame, form.plan_.step_of(*n).slot);
      FXJIT_CHECK(v, "the value of ", n->name(), " was released before its last use");
      return *v;
    });
  }

  fx::Value run(fxjit_frame* frame, const fx::Node& n) const {
    const fx::Value args = load(frame, n.args()), kwargs = load(frame, n.kwargs());
    switch (n.op()) {
      case fx::Opcode::GetAttr:
        return callees.get_attr(n.target(), args.items(), kwargs);
      case fx::Opcode::CallFunction:
        return callees.call_function(n.target(), args.items(), kwargs);
      case fx::Opcode::CallMethod:
        return callees.call_method(n.target(), args.items(), kwargs);
      case fx::Opcode::CallModule:
        return callees.call_module(n.target(), args.items(), kwargs);
      case fx::Opcode::Output:
        return args[0];
      case fx::Opcode::Placeholder:
      case fx::Opcode::Root:
        break;
    }
    FXJIT_UNREACHABLE(n.name(), " is not called");
  }
};

GenericForm::GenericForm(std::shared_ptr<const fx::Graph> graph, const Options& options)
    : graph_(std::move(graph)), options_(options), plan_(codegen::plan_generic(*graph_)) {}

GenericForm::~GenericForm() = default;

fxjit_status GenericForm::call(fxjit_frame* frame, int32_t step) {
  try {
    const Call& call = *static_cast<const Call*>(frame->program);
    const codegen::ForwardStep& s = call.form.plan_.steps[static_cast<size_t>(step)];
    frame->slots[s.slot] = new fx::Value(call.run(frame, *s.node));
    return FXJIT_OK;
  } catch (...) {
    return torch_::catch_into(frame);
  }
}

void GenericForm::release(fxjit_frame* frame, int32_t slot) {
  delete value_in(frame, slot);
  frame->slots[slot] = nullptr;
}

const fxjit_table* GenericForm::table() {
  static const fxjit_table table = {&call, &release, nullptr, nullptr};
  return &table;
}

fxjit_generic GenericForm::function() {
  std::call_once(once_, [this] {
    try {
      support::fault_point(options_, "generic");
      auto target = jit::target_for(options_);
      if (target) compiled_ = jit::compile_generic(*graph_, plan_, {table(), nullptr}, **target);
    } catch (const std::exception&) {
      problem_ = support::absorb_fault(options_);
      failed_.store(true, std::memory_order_release);
    }
  });
  return compiled_.function;
}

fx::Value GenericForm::interpret(fx::GraphModule& root, std::span<const fx::Value> bound) const {
  fx::Interpreter interpreter(&root, *graph_, &torch_::method_resolver());
  size_t i = 0;
  for (const fx::Node* n : graph_->nodes())
    if (n->op() == fx::Opcode::Placeholder) interpreter.set_value(*n, bound[i++]);
  return interpreter.run(std::span<const fx::Value>());
}

fx::Value GenericForm::run(fx::GraphModule& root, std::span<const fx::Value> bound) {
  const fxjit_generic forward = function();
  if (!forward) return interpret(root, bound);
  FXJIT_CHECK(bound.size() == static_cast<size_t>(plan_.inputs), "a call with ", bound.size(), " bound arguments");
  fx::Interpreter callees(&root, *graph_, &torch_::method_resolver());
  const Call call{*this, callees};
  fxjit_frame* frame = fxjit_frame_acquire(plan_.slots, 0);
  if (!frame) throw std::bad_alloc();
  frame->table = table();
  frame->program = &call;
  std::vector<fxjit_value> in;
  for (const fx::Value& v : bound) in.push_back(const_cast<fx::Value*>(&v));
  fxjit_value out = nullptr;
  const fxjit_status status = forward(frame, in.data(), &out);
  const std::unique_ptr<fx::Value> result(static_cast<fx::Value*>(out));
  for (int32_t s = 0; s < plan_.slots; ++s) {
    if (s >= plan_.inputs) delete value_in(frame, s);
    frame->slots[s] = nullptr;
  }
  const std::exception_ptr error = torch_::take_error(frame);
  fxjit_frame_release(frame);
  if (error) std::rethrow_exception(error);
  FXJIT_CHECK(status == FXJIT_OK, "the generic form failed without an exception");
  return result ? std::move(*result) : fx::Value();
}

std::string GenericForm::code() const { return jit::generic_ir(*graph_, plan_); }

}  // namespace fxjit::inline v0::driver
