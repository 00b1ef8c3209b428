// Names of functions and tensors in saved files.
#include "fxjit/errors.h"
#include "fxjit/torch/values.h"
#include "torch/method_resolver.h"
#include "torch/saved_module.h"
#include "torch/tensor_object.h"

namespace fxjit::inline v0::torch_ {
namespace {

// Modules whose functions are ATen's operators of the same names.
constexpr std::string_view kModules[] = {"torch",        "torch.nn.functional", "torch.special",    "torch.linalg",
                                         "torch.fft",    "torch._C._nn",        "torch._C._linalg", "torch._C._fft",
                                         "torch.Tensor", "torch._C._special"};

bool reads_files(std::string_view op) { return op == "from_file" || op == "save"; }

}  // namespace

std::optional<fx::ObjectText> FileCodec::encode(const fx::Object& object) {
  if (dynamic_cast<const TensorHandle*>(&object)) {
    return fx::ObjectText{"tensor", fx::Argument::tuple({number_of(object)}), {}};
  }
  return TextCodec::encode(object);
}

int64_t FileCodec::number_of(const fx::Object& tensor) {
  const auto [it, added] = numbers_.emplace(tensor.identity(), static_cast<int64_t>(tensors.size()));
  if (added) tensors.emplace_back(const_cast<fx::Object*>(&tensor));
  return it->second;
}

fx::Argument FileCodec::decode(const fx::ObjectText& text) {
  if (text.kind != "tensor") return TextCodec::decode(text);
  const bool number = text.args.size() == 1 && text.args[0].is_int() && text.kwargs.is_none();
  const int64_t i = number ? text.args[0].as_int() : -1;
  if (i < 0 || i >= static_cast<int64_t>(tensors.size())) throw ValueError("there is no such tensor in this file");
  return tensors[static_cast<size_t>(i)];
}

fx::CallableRef FileCodec::find(std::string_view name) {
  if (globals_) {
    if (auto it = globals_->find(name); it != globals_->end()) return it->second;
  }
  std::string_view op = name;
  if (op.find("::") != op.npos) {
    if (op.ends_with(".default")) op.remove_suffix(8);
    const std::string_view base = op.substr(op.find("::") + 2);
    if (reads_files(base.substr(0, base.find('.'))))
      throw ValueError("a saved graph may not call " + std::string(name));
    try {
      return aten(op);
    } catch (const NameError& e) {
      throw ValueError(e.what());
    }
  }
  const size_t colon = name.find_last_of(":.");
  const std::string_view module = name.substr(0, colon == name.npos ? 0 : colon);
  op = name.substr(colon == name.npos ? 0 : colon + 1);
  for (std::string_view known : kModules) {
    if (module == known && has_operator(op) && !reads_files(op)) return aten(op);
  }
  if (module == "torch.linalg" && has_operator("linalg_" + std::string(op))) return aten("linalg_" + std::string(op));
  return TextCodec::find(name);
}

}  // namespace fxjit::inline v0::torch_
