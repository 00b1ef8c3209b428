// One function of a specialised forward while it is written: tensors' fields, sizes, scalars, each read once.
#pragma once

#include <unordered_map>

#include "codegen/forward/host_module.h"
#include "codegen/forward/specialised_plan.h"

namespace fxjit::inline v0::codegen {

class Body {
 public:
  // `function` has the parameters frame, in, scalars, out. `symbols_stored`: the frame holds the symbols' values.
  Body(HostModule& host, llvm::Function* function, const ShapeEnv& env, const ForwardInputs& inputs,
       const SpecialisedPlan& plan, bool symbols_stored)
      : f(host, function), env_(env), inputs_(inputs), plan_(plan), symbols_stored_(symbols_stored) {}

  HostFunction f;
  HostModule& host() { return f.host(); }
  llvm::IRBuilder<>& ir() { return f.ir(); }
  const ShapeEnv& env() const { return env_; }
  const ForwardInputs& inputs() const { return inputs_; }
  const SpecialisedPlan& plan() const { return plan_; }
  const TensorLayout& layout() const { return inputs_.layout; }

  // Values are cached per function: ask for them only where the code runs on every path.
  llvm::Value* dim(Dim d);  // i64; the id -1 is 0
  llvm::Value* product(const std::vector<Dim>& dims);
  llvm::Value* symbol(int64_t index);         // i64
  llvm::Value* scalar(int32_t input);         // i64: the bits of a number
  llvm::Value* real(const NumberOperand& o);  // double
  llvm::Value* slots();
  llvm::Value* input_tensor(int32_t input);  // ptr
  llvm::Value* size(int32_t input, int32_t dim);
  llvm::Value* stride(int32_t input, int32_t dim);
  llvm::Value* storage_data(llvm::Value* tensor);  // not cached

  // The tensor of a value in a slot or an input.
  llvm::Value* tensor(int32_t value);
  // Its first element; for a value in the arena too.
  llvm::Value* data(int32_t value);
  // Gives a value the address that has just been made, e.g. by table->empty.
  void set_data(int32_t value, llvm::Value* pointer) { data_[value] = pointer; }
  // Tensors' addresses may have changed: a callee ran. Those in the arena stay.
  void forget_data();
  // Asks the host, which makes the memory writable.
  llvm::Value* writable_data(int32_t value);

  // table->field(frame, …): `offset` is the field's in fxjit_table.
  llvm::Value* table_function(int64_t offset);
  // An array on the stack, for all of the function.
  llvm::Value* stack(llvm::Type* type, int64_t count, const char* name);

 private:
  llvm::Value* evaluate(const SymExpr& e);
  llvm::Value* evaluate(const NumberExpr& e);
  llvm::Value* floor_divide(llvm::Value* a, Dim b);
  llvm::Value* divide_by(llvm::Value* a, llvm::Value* b);
  llvm::Value* read_symbol(const SymSource& source);
  llvm::Value* metadata(int32_t input, int32_t dim, bool stride);

  const ShapeEnv& env_;
  const ForwardInputs& inputs_;
  const SpecialisedPlan& plan_;
  bool symbols_stored_;
  llvm::Value* slots_ = nullptr;
  llvm::Value* table_ = nullptr;
  std::unordered_map<int32_t, llvm::Value*> dims_, tensors_, input_tensors_, data_, scalars_;
  std::unordered_map<int64_t, llvm::Value*> symbols_, sizes_;
};

}  // namespace fxjit::inline v0::codegen
