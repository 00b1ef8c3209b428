#include "fxjit/fx/types.h"

#include <array>

namespace fxjit::inline v0::fx {

std::string_view python_name(DType t) {
  switch (t) {
    case DType::UInt8:
      return "torch.uint8";
    case DType::Int8:
      return "torch.int8";
    case DType::Int16:
      return "torch.int16";
    case DType::Int32:
      return "torch.int32";
    case DType::Int64:
      return "torch.int64";
    case DType::Float16:
      return "torch.float16";
    case DType::Float32:
      return "torch.float32";
    case DType::Float64:
      return "torch.float64";
    case DType::Complex64:
      return "torch.complex64";
    case DType::Complex128:
      return "torch.complex128";
    case DType::Bool:
      return "torch.bool";
    case DType::BFloat16:
      return "torch.bfloat16";
  }
  return "torch.dtype?";
}

std::string_view device_type_name(int8_t type) {
  constexpr std::array<std::string_view, 21> names{
      "cpu",   "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip",  "fpga", "maia", "xla",          "vulkan",
      "metal", "xpu",  "mps",    "meta",   "hpu",    "ve",    "lazy", "ipu",  "mtia", "privateuseone"};
  return type >= 0 && static_cast<size_t>(type) < names.size() ? names[static_cast<size_t>(type)] : "unknown";
}

std::string python_name(Device d) {
  std::string out(device_type_name(d.type));
  if (d.index >= 0) out += ":" + std::to_string(d.index);
  return out;
}

std::string_view python_name(Layout l) {
  switch (l) {
    case Layout::Strided:
      return "torch.strided";
    case Layout::Sparse:
      return "torch.sparse_coo";
    case Layout::SparseCsr:
      return "torch.sparse_csr";
    case Layout::Mkldnn:
      return "torch._mkldnn";
    case Layout::SparseCsc:
      return "torch.sparse_csc";
    case Layout::SparseBsr:
      return "torch.sparse_bsr";
    case Layout::SparseBsc:
      return "torch.sparse_bsc";
    case Layout::Jagged:
      return "torch.jagged";
  }
  return "torch.layout?";
}

std::string_view python_name(MemoryFormat f) {
  switch (f) {
    case MemoryFormat::Contiguous:
      return "torch.contiguous_format";
    case MemoryFormat::Preserve:
      return "torch.preserve_format";
    case MemoryFormat::ChannelsLast:
      return "torch.channels_last";
    case MemoryFormat::ChannelsLast3d:
      return "torch.channels_last_3d";
  }
  return "torch.memory_format?";
}

}  // namespace fxjit::inline v0::fx
