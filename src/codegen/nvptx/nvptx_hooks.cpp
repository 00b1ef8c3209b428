#include "codegen/nvptx/nvptx_hooks.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Module.h>

#include "support/errors.h"

namespace fxjit::inline v0::codegen {
namespace {

using llvm::Value;

constexpr unsigned kGlobal = 1;  // NVPTX's address space of device memory

const char* name_of(LaunchField field) {
  switch (field) {
    case LaunchField::Pointer:
      return "buffer";
    case LaunchField::Extent:
      return "extent";
    case LaunchField::Stride:
      return "stride";
    case LaunchField::Scalar:
      return "scalar";
    case LaunchField::Blocks:
      return "blocks";
  }
  return "?";
}

class NvptxHooks final : public TargetHooks {
 public:
  NvptxHooks(int sm, const kernel::Kernel& k) : sm_(sm), parameters_(gpu_parameters(k)) {}

  TargetDescription description() const override {
    return {"nvptx64-nvidia-cuda", "sm_" + std::to_string(sm_), sm_ == 80 ? "+ptx70" : "+ptx80",
            "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"};
  }
  int lanes() const override { return 1; }
  int registers() const override { return 255; }

  llvm::Function* declare_kernel(llvm::Module& m, const std::string& symbol) const override {
    llvm::LLVMContext& c = m.getContext();
    llvm::Type* i64 = llvm::Type::getInt64Ty(c);
    llvm::Type* pointer = llvm::PointerType::get(c, kGlobal);
    std::vector<llvm::Type*> types;
    for (const GpuParameter& p : parameters_) types.push_back(is_pointer(p) ? pointer : i64);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(c), types, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, m);
    f->setCallingConv(llvm::CallingConv::PTX_Kernel);
    f->setDoesNotThrow();
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const GpuParameter& p = parameters_[i];
      f->getArg(i)->setName(p.kind == GpuParameter::Units ? "units" : name_of(p.field) + std::to_string(p.index));
    }
    return f;
  }

  Iteration iteration(Ir& b, llvm::Function& f) const override {
    auto read = [&](llvm::Intrinsic::ID id) { return b.CreateZExt(b.CreateIntrinsic(id, {}, {}), b.getInt64Ty()); };
    Iteration i;
    i.begin = read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
    i.end = f.getArg(0);
    i.unit_step = read(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    i.inner_begin = read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    i.inner_step = read(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
    return i;
  }

  Value* launch_field(Ir&, llvm::Function& f, LaunchField field, int index) const override {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const GpuParameter& p = parameters_[i];
      if (p.kind == GpuParameter::Field && p.field == field && p.index == index) return f.getArg(i);
    }
    FXJIT_UNREACHABLE("a kernel reads ", name_of(field), " ", index, ", which is no parameter of it");
  }

  // cvt.rzi, which is what eager's device code has: it saturates where x86 gives the smallest integer. Narrower types
  // take the low bits; ATen converts to uint8 through int64 (c10/util/TypeCast.h).
  Value* float_to_int(Ir& b, Value* x, DType to) const override {
    const bool through_64 = to == DType::Int64 || to == DType::UInt8;
    const bool is_double = x->getType()->isDoubleTy();
    const auto id = through_64 ? (is_double ? llvm::Intrinsic::nvvm_d2ll_rz : llvm::Intrinsic::nvvm_f2ll_rz)
                               : (is_double ? llvm::Intrinsic::nvvm_d2i_rz : llvm::Intrinsic::nvvm_f2i_rz);
    Value* wide = b.CreateIntrinsic(id, {}, {x});
    const auto bits = static_cast<unsigned>(8 * size_of(to));
    return bits < wide->getType()->getIntegerBitWidth() ? b.CreateTrunc(wide, b.getIntNTy(bits)) : wide;
  }

 private:
  static bool is_pointer(const GpuParameter& p) {
    return p.kind == GpuParameter::Field && p.field == LaunchField::Pointer;
  }

  int sm_;
  std::vector<GpuParameter> parameters_;
};

}  // namespace

std::vector<GpuParameter> gpu_parameters(const kernel::Kernel& k) {
  std::vector<GpuParameter> parameters = {{}};
  auto add = [&](LaunchField field, size_t index) {
    parameters.push_back({GpuParameter::Field, field, static_cast<int>(index)});
  };
  add(LaunchField::Blocks, 0);
  for (size_t i = 0; i < k.buffers.size(); ++i) add(LaunchField::Pointer, i);
  for (size_t i = 0; i < k.axes.size(); ++i) add(LaunchField::Extent, i);
  for (size_t i = 0; i < k.buffers.size(); ++i) {
    for (size_t a = 0; a < k.axes.size(); ++a) {
      if (k.buffers[i].strides[a] == kernel::StrideClass::Any) add(LaunchField::Stride, i * k.axes.size() + a);
    }
  }
  for (size_t i = 0; i < k.scalars.size(); ++i) add(LaunchField::Scalar, i);
  return parameters;
}

std::unique_ptr<TargetHooks> make_nvptx_hooks(int sm, const kernel::Kernel& k) {
  FXJIT_CHECK(sm == 80 || sm == 90, "no code for sm_", sm);
  return std::make_unique<NvptxHooks>(sm, k);
}

}  // namespace fxjit::inline v0::codegen
