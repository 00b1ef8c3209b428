#include "driver/size_blind.h"

#include <algorithm>
#include <iterator>

namespace fxjit::inline v0::driver {
namespace {

// By operator name: overloads are alike. Looked up in ATen's native functions, each for what it does with sizes.
constexpr std::string_view kSizeBlind[] = {
    "H",
    "T",
    "_batch_norm_impl_index",
    "_convolution",
    "absolute_",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adjoint",
    "alpha_dropout",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "clip_",
    "concat",
    "concatenate",
    "contiguous",
    "conv1d",
    "conv2d",
    "conv3d",
    "divide",
    "divide_",
    "dropout",
    "dropout_",
    "feature_alpha_dropout",
    "feature_dropout",
    "fix_",
    "float_power",
    "greater",
    "greater_equal",
    "isfinite",
    "layer_norm",
    "less",
    "less_equal",
    "linear",
    "log_softmax",
    "mH",
    "mT",
    "matrix_H",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "movedim",
    "moveaxis",
    "multiply",
    "multiply_",
    "negative_",
    "not_equal",
    "numpy_T",
    "positive",
    "relu6",
    "relu6_",
    "rms_norm",
    "selu",
    "selu_",
    "softmax",
    "square_",
    "subtract",
    "subtract_",
    "swapaxes",
    "swapdims",
    "true_divide",
    "true_divide_",
    "type_as",
};

}  // namespace

bool is_size_blind(std::string_view composite) {
  if (size_t at = composite.find("::"); at != composite.npos) composite.remove_prefix(at + 2);
  composite = composite.substr(0, composite.find('.'));
  return std::find(std::begin(kSizeBlind), std::end(kSizeBlind), composite) != std::end(kSizeBlind);
}

std::string first_that_bakes_sizes(const std::set<std::string>& composites) {
  for (const std::string& name : composites)
    if (!is_size_blind(name)) return name;
  return {};
}

}  // namespace fxjit::inline v0::driver
