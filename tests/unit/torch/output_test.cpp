#include "torch/output.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "runtime/pool.h"

namespace fxjit::torch_ {
namespace {

at::Tensor output(DType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, void** data = nullptr) {
  void* ignored;
  return at::Tensor(
      make_output(dtype, static_cast<int32_t>(sizes.size()), sizes.data(), strides.data(), data ? data : &ignored));
}

TEST(Output, LooksLikeEmptyStrided) {
  struct Case {
    std::vector<int64_t> sizes, strides;
  };
  for (const Case& c :
       {Case{{2, 3, 4}, {12, 4, 1}}, Case{{2, 3, 4}, {1, 2, 6}}, Case{{}, {}}, Case{{0, 4}, {4, 1}},
        Case{{3, 0}, {1, 1}}, Case{{4, 5}, {0, 1}}, Case{{2, 3, 4, 5, 6, 7}, {2520, 840, 210, 42, 7, 1}},
        Case{{2, 3, 8, 8}, {192, 1, 24, 3}}, Case{{1, 5}, {17, 1}}}) {
    void* data = nullptr;
    at::Tensor ours = output(DType::Float16, c.sizes, c.strides, &data);
    at::Tensor theirs = at::detail::empty_strided_cpu(c.sizes, c.strides, c10::ScalarType::Half);
    EXPECT_EQ(ours.sizes(), theirs.sizes());
    EXPECT_EQ(ours.strides(), theirs.strides());
    EXPECT_EQ(ours.numel(), theirs.numel());
    EXPECT_EQ(ours.is_contiguous(), theirs.is_contiguous());
    EXPECT_EQ(ours.is_contiguous(c10::MemoryFormat::ChannelsLast),
              theirs.is_contiguous(c10::MemoryFormat::ChannelsLast));
    EXPECT_EQ(ours.is_non_overlapping_and_dense(), theirs.is_non_overlapping_and_dense());
    EXPECT_EQ(ours.key_set(), theirs.key_set());
    EXPECT_EQ(ours.storage().nbytes(), theirs.storage().nbytes());
    EXPECT_EQ(ours._version(), 0u);
    EXPECT_EQ(data, ours.storage().mutable_data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  }
}

TEST(Output, InferenceModeGivesInferenceTensors) {
  c10::InferenceMode on;
  EXPECT_TRUE(output(DType::Float32, {2}, {1}).is_inference());
}

TEST(Output, CanBeResizedAndSurvivesThePool) {
  at::Tensor t = output(DType::Float32, {4}, {1});
  t.fill_(3);
  t.resize_({1000});
  EXPECT_EQ(t.numel(), 1000);
  EXPECT_EQ(t[3].item<float>(), 3);
}

TEST(Output, MemoryReturnsAndIsUsedAgain) {
  void* first = nullptr;
  {
    at::Tensor t = output(DType::Float32, {1 << 20}, {1}, &first);
  }
  void* second = nullptr;
  at::Tensor t = output(DType::Float32, {1 << 20}, {1}, &second);
  EXPECT_EQ(first, second);
  std::thread([moved = std::move(t)]() mutable { moved = at::Tensor(); }).join();
  at::Tensor again = output(DType::Float32, {1 << 20}, {1}, &second);
  EXPECT_EQ(first, second);
}

TEST(Output, ErrorsAreThoseOfEager) {
  auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const std::exception& e) {
      return std::string(e.what()).substr(0, 60);
    }
    return "";
  };
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{int64_t{1} << 62, 4}, {-1, 4}, {int64_t{1} << 45, 64}}) {
    std::vector<int64_t> strides = {sizes[1], 1};
    std::string ours = message([&] { output(DType::Float64, sizes, strides); });
    std::string theirs = message([&] { at::detail::empty_strided_cpu(sizes, strides, c10::ScalarType::Double); });
    EXPECT_EQ(ours, theirs);
    EXPECT_NE(ours, "");
  }
}

}  // namespace
}  // namespace fxjit::torch_
