// What the tests of the driver share: equality with eager, small programs.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>

namespace fxjit::testing {

// Type, sizes, strides and values; `tolerance` 0 asks for equal values (NaNs match).
inline ::testing::AssertionResult same(const at::Tensor& got, const at::Tensor& want, double tolerance = 0) {
  auto fail = [](const std::string& what) { return ::testing::AssertionFailure() << what; };
  if (got.defined() != want.defined()) return fail("one of the two is undefined");
  if (!got.defined()) return ::testing::AssertionSuccess();
  if (got.scalar_type() != want.scalar_type())
    return fail(std::string("types differ: ") + c10::toString(got.scalar_type()) + ", " +
                c10::toString(want.scalar_type()));
  if (got.sizes() != want.sizes()) return fail("sizes differ: " + c10::str(got.sizes(), ", ", want.sizes()));
  if (got.strides() != want.strides()) return fail("strides differ: " + c10::str(got.strides(), ", ", want.strides()));
  if (got.requires_grad() != want.requires_grad()) return fail("requires_grad differs");
  const bool equal = at::allclose(got.to(at::kDouble), want.to(at::kDouble), tolerance, tolerance, true);
  return equal ? ::testing::AssertionSuccess() : fail("values differ");
}

}  // namespace fxjit::testing
