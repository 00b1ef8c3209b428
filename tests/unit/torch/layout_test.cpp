#include "torch/layout.h"

#include <gtest/gtest.h>

namespace fxjit::torch_ {
namespace {

TEST(Layout, HoldsForTheTorchThatIsLoaded) { EXPECT_EQ(tensor_layout().problem, ""); }

TEST(Layout, EveryWrongOffsetIsFound) {
  using L = codegen::TensorLayout;
  int32_t L::* const fields[] = {
      &L::storage, &L::autograd_meta, &L::version_counter, &L::rank,    &L::inline_sizes, &L::storage_offset, &L::numel,
      &L::dtype,   &L::device_type,   &L::device_index,    &L::key_set, &L::storage_data, &L::version};
  for (size_t i = 0; i < std::size(fields); ++i) {
    for (int32_t shift : {-8, 8}) {
      L wrong = tensor_layout().layout;
      wrong.*fields[i] += shift;
      // A pointer field shifted onto another pointer is read through; the values there differ, or it is null.
      if (fields[i] == &L::storage || fields[i] == &L::version_counter) continue;
      EXPECT_NE(check_layout(wrong), "") << "field " << i << " by " << shift;
    }
  }
}

}  // namespace
}  // namespace fxjit::torch_
