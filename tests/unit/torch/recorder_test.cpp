#include "torch/recorder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <thread>

#include "torch/convert.h"
#include "torch/import_record.h"

namespace fxjit::torch_ {
namespace {

std::string record(const std::vector<at::Tensor>& inputs, const std::function<void()>& run, Recorder& r) {
  for (const at::Tensor& t : inputs) r.add_input(t);
  {
    RecordingGuard on(r);
    run();
  }
  return print_record(r);
}

TEST(Recorder, SeesOperatorsWholeAndInOrder) {
  Recorder r;
  at::Tensor x = at::ones({4}, c10::ScalarType::Half);
  at::Tensor y;
  std::string text = record({x}, [&] { y = x.to(c10::ScalarType::Float).sigmoid().to(c10::ScalarType::Half); }, r);
  EXPECT_EQ(text,
            "%1 = aten::to.dtype(%0, torch.float32, False, False, None)\n"
            "%2 = aten::sigmoid(%1)\n"
            "%3 = aten::to.dtype(%2, torch.float16, False, False, None)\n");
  EXPECT_EQ(r.find(y), 3);
  EXPECT_EQ(r.find(x), 0);
  EXPECT_EQ(r.values()[3].origin, Origin::Result);
  EXPECT_EQ(r.values()[3].info.dtype, c10::ScalarType::Half);
  EXPECT_EQ(find_obstacle(r), "");
}

TEST(Recorder, CompositesWithoutARowShowTheirInterior) {
  Recorder r({.has_row = [](std::string_view name) { return name == "aten::t" || name == "aten::relu"; }, .probe = {}});
  at::Tensor x = at::ones({2, 3}), w = at::ones({4, 3});
  std::string text = record({x, w}, [&] { at::matmul(x, w.t()).relu(); }, r);
  EXPECT_EQ(text, "%2 = aten::t(%1)\n%3 = aten::mm(%0, %2)\n%4 = aten::relu(%3)\n");
}

TEST(Recorder, NumbersStayNumbersWithTheirType) {
  Recorder r;
  at::Tensor x = at::ones({4});
  std::string text = record({x}, [&] { x.mul(wrapped_number(2.0)).add(wrapped_number(int64_t{3}), 2); }, r);
  EXPECT_EQ(text, "%1 = aten::mul.Tensor(%0, 2.0)\n%2 = aten::add.Tensor(%1, 3, 2)\n");
}

TEST(Recorder, InPlaceOperatorsHandTheirArgumentThrough) {
  Recorder r;
  at::Tensor x = at::ones({4});
  std::string text = record({x}, [&] { x.add_(1).view({2, 2}); }, r);
  EXPECT_EQ(text, "%0 = aten::add_.Scalar(%0, 1, 1)\n%1 = aten::view(%0, [2, 2])\n");
  EXPECT_TRUE(r.calls()[0].flags & kMutates);
  EXPECT_EQ(r.values()[1].storage, r.values()[0].storage);
}

TEST(Recorder, ListsOfTensors) {
  Recorder r;
  at::Tensor x = at::ones({4});
  std::string text = record({x}, [&] { at::cat({x, x.split(2)[1]}); }, r);
  EXPECT_EQ(text, "[%1, %2] = aten::split.Tensor(%0, 2, 0)\n%3 = aten::cat([%0, %2], 0)\n");
}

TEST(Recorder, DataReadsAreObstacles) {
  for (auto read : {+[](const at::Tensor& x) { x.item(); }, +[](const at::Tensor& x) { x.is_nonzero(); },
                    +[](const at::Tensor& x) { x.equal(x); }}) {
    Recorder r({.has_row = [](std::string_view) { return false; }, .probe = {}});
    at::Tensor x = at::ones({});
    record({x}, [&] { read(x); }, r);
    EXPECT_TRUE(r.calls()[0].flags & kDataRead);
    EXPECT_NE(find_obstacle(r).find("reads data of a tensor on the host"), std::string::npos);
  }
}

TEST(Recorder, UnknownTensorsAreFlagged) {
  float data[4] = {1, 2, 3, 4};
  Recorder r;
  at::Tensor x = at::ones({4});
  record({x}, [&] { x.add(at::from_blob(data, {4})); }, r);
  ASSERT_EQ(r.calls().size(), 1u);
  EXPECT_TRUE(r.calls()[0].flags & kUnknownInput);
  EXPECT_EQ(find_obstacle(r), "aten::add.Tensor (call 0 of the record) uses a tensor of unknown origin");
}

TEST(Recorder, TensorsMadeInsideAreKnown) {
  Recorder r;
  at::Tensor x = at::ones({4});
  at::Tensor y;
  record({x}, [&] { y = x.add(at::ones({4})); }, r);
  EXPECT_EQ(find_obstacle(r), "");
  EXPECT_EQ(r.calls()[0].name(), "aten::ones");
  EXPECT_EQ(r.find(y), 2);
}

TEST(Recorder, AddressesOfDeadTensorsAreNotReused) {
  Recorder r;
  at::Tensor x = at::ones({4});
  record(
      {x},
      [&] {
        for (int i = 0; i < 100; ++i) x.add(i);
      },
      r);
  EXPECT_EQ(r.values().size(), 101u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(r.calls()[i].results[0].value, static_cast<ValueId>(i + 1));
}

TEST(Recorder, MetadataChangesAreFlagged) {
  Recorder r;
  at::Tensor x = at::ones({2, 3});
  record({x}, [&] { x.t_(); }, r);
  EXPECT_TRUE(r.calls()[0].flags & kMetadata);
  Recorder behind_its_back;
  at::Tensor y = at::ones({2, 3});
  record(
      {y},
      [&] {
        y.unsafeGetTensorImpl()->set_sizes_contiguous({6});
        y.relu();
      },
      behind_its_back);
  EXPECT_TRUE(behind_its_back.calls()[0].flags & kChangedInput);
}

TEST(Recorder, RandomAndDataDependentShapes) {
  Recorder r;
  at::Tensor x = at::ones({4});
  record(
      {x},
      [&] {
        x.bernoulli();
        x.nonzero();
      },
      r);
  EXPECT_TRUE(r.calls()[0].flags & kRandom);
  EXPECT_TRUE(r.calls()[1].flags & kDynamicShape);
}

TEST(Recorder, ScopesAndErrors) {
  Recorder r;
  at::Tensor x = at::ones({4}), y = at::ones({5});
  r.add_input(x);
  r.add_input(y);
  {
    RecordingGuard on(r);
    EXPECT_TRUE(is_recording());
    r.begin_scope(7);
    x.relu();
    r.end_scope();
    EXPECT_THROW(x.add(y), std::exception);
    {
      PauseRecording pause;
      EXPECT_FALSE(is_recording());
      x.neg();
    }
    r.begin_scope(8);
    x.abs();
    std::thread([&] { x.neg(); }).join();  // other threads are not recorded
    Recorder second;
    EXPECT_THROW(RecordingGuard{second}, RuntimeError);
    EXPECT_TRUE(is_recording());
  }
  EXPECT_FALSE(is_recording());
  x.neg();
  EXPECT_EQ(print_record(r), "%2 = aten::relu(%0)  # scope 7\n%3 = aten::abs(%0)  # scope 8\n");
}

TEST(Recorder, ChangesNothingOfWhatRuns) {
  at::Tensor x = at::rand({2, 3, 8, 8}), w = at::rand({4, 3, 3, 3}).requires_grad_();
  at::Tensor plain = at::conv2d(x, w).relu_().sum();
  plain.backward();
  at::Tensor gradient = w.grad().clone();
  w.mutable_grad() = at::Tensor();
  Recorder r;
  at::Tensor recorded;
  record(
      {x, w},
      [&] {
        recorded = at::conv2d(x, w).relu_().sum();
        recorded.backward();
      },
      r);
  EXPECT_TRUE(recorded.equal(plain));
  EXPECT_TRUE(w.grad().equal(gradient));
  EXPECT_EQ(r.calls()[0].name(), "aten::conv2d");
  // make_variable takes a tensor over only while nobody else refers to it.
  Recorder identity;
  at::Tensor made;
  record({}, [&] { made = at::ones({2}).requires_grad_(); }, identity);
  EXPECT_GE(identity.find(made), 0);
}

}  // namespace
}  // namespace fxjit::torch_
