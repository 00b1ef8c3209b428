#include "torch/host_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <functional>

namespace fxjit::torch_ {
namespace {

// `change` alters the state, and undoing it restores the word.
void expect_seen(const std::function<void()>& change, const std::function<void()>& undo) {
  HostState before = host_state();
  EXPECT_EQ(before, host_state());
  change();
  EXPECT_FALSE(before == host_state());
  undo();
  EXPECT_EQ(before, host_state());
}

TEST(HostState, EveryPartIsSeen) {
  at::Context& context = at::globalContext();
  expect_seen([] { c10::GradMode::set_enabled(false); }, [] { c10::GradMode::set_enabled(true); });
  expect_seen([&] { context.setDeterministicAlgorithms(true, false); },
              [&] { context.setDeterministicAlgorithms(false, false); });
  expect_seen([&] { context.setFlushDenormal(true); }, [&] { context.setFlushDenormal(false); });
  expect_seen([] { c10::set_default_dtype(caffe2::TypeMeta::Make<double>()); },
              [] { c10::set_default_dtype(caffe2::TypeMeta::Make<float>()); });
  expect_seen([] { at::autocast::set_autocast_enabled(c10::DeviceType::CPU, true); },
              [] { at::autocast::set_autocast_enabled(c10::DeviceType::CPU, false); });
  HostState outside = host_state();
  {
    c10::InferenceMode on;
    EXPECT_FALSE(outside == host_state());
    EXPECT_FALSE(grad_mode(host_state()));
  }
  EXPECT_EQ(outside, host_state());
}

TEST(HostState, TheAutocastTypeCountsWhileAutocastIsOn) {
  HostState off = host_state();
  auto dtype = at::autocast::get_autocast_dtype(c10::DeviceType::CPU);
  at::autocast::set_autocast_dtype(c10::DeviceType::CPU, c10::ScalarType::Half);
  EXPECT_EQ(off, host_state());
  at::autocast::set_autocast_enabled(c10::DeviceType::CPU, true);
  HostState half = host_state();
  at::autocast::set_autocast_dtype(c10::DeviceType::CPU, c10::ScalarType::BFloat16);
  EXPECT_FALSE(half == host_state());
  at::autocast::set_autocast_enabled(c10::DeviceType::CPU, false);
  at::autocast::set_autocast_dtype(c10::DeviceType::CPU, dtype);
  EXPECT_EQ(off, host_state());
}

TEST(HostState, LoweredMatmulPrecision) {
  EXPECT_FALSE(matmul_precision_lowered());
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision("medium");
  EXPECT_TRUE(matmul_precision_lowered());
  context.setFloat32MatmulPrecision("highest");
  EXPECT_FALSE(matmul_precision_lowered());
}

}  // namespace
}  // namespace fxjit::torch_
