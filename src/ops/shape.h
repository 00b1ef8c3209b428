// Shapes and layouts of results over symbolic sizes. Questions that the expressions leave open are answered from the
// hints and become guards; layouts are decided by the form of the stride expressions (tensor_type.h).
#pragma once

#include <span>
#include <vector>

#include "fxjit/tensor_type.h"
#include "support/result.h"

namespace fxjit::inline v0::ops {

using Dims = std::vector<Dim>;

// ATen's infer_size over all shapes, aligned at the last dimension. Failure where two sizes differ and neither is 1.
Result<Dims> broadcast(ShapeEnv& env, std::span<const Dims* const> shapes);

// What a TensorIterator sees of an operand: also a number is one, without dimensions.
struct Layout {
  Dims sizes, strides;
};
Layout layout_of(const TensorType& t);

// The strides that a TensorIterator gives to an output that it allocates: those of its fast set-up where all operands
// have one shape and are contiguous, channels-last or dense alike, else a dense order found from the operands'
// strides, the first operand first. `shape` is the broadcast shape; every input operand takes part, numbers too.
Dims iterator_strides(ShapeEnv& env, const Dims& shape, std::span<const Layout> operands);

// at::empty_like with preserved format: clone, to, zeros_like.
Dims preserved_strides(ShapeEnv& env, const Layout& t);

// Strides in the sense of at::MemoryFormat::ChannelsLast, for four dimensions; false for other ranks.
bool is_channels_last(ShapeEnv& env, const Layout& t);
// The elements fill their extent of memory without gap or overlap, in some order of dimensions.
bool is_dense(ShapeEnv& env, const Layout& t);

// The shape of a reduction of the marked dimensions. (Its result is contiguous.)
Dims reduced_sizes(ShapeEnv& env, const Dims& sizes, const std::vector<bool>& reduced, bool keepdim);

// Views. Dimensions count from the end where negative. Failure: out of range, or no view of that memory.
Result<Layout> permute(ShapeEnv& env, const Layout& t, std::span<const int64_t> dims);
Result<Layout> transpose(ShapeEnv& env, const Layout& t, int64_t a, int64_t b);
Result<Layout> expand(ShapeEnv& env, const Layout& t, const Dims& sizes);  // an id of -1 keeps the size
Result<Layout> unsqueeze(ShapeEnv& env, const Layout& t, int64_t dim);
Result<Layout> squeeze(ShapeEnv& env, const Layout& t, std::span<const int64_t> dims);  // none: all of size 1
Result<Layout> select(ShapeEnv& env, const Layout& t, int64_t dim);
Result<Layout> slice(ShapeEnv& env, const Layout& t, int64_t dim, int64_t start, int64_t end, int64_t step);
// `sizes` may hold one Dim of the constant -1. Failure also where the result would have to be a copy.
Result<Layout> view(ShapeEnv& env, const Layout& t, const Dims& sizes);
// The sizes with their -1 filled in. Failure where the numbers of elements differ.
Result<Dims> infer_view_sizes(ShapeEnv& env, const Dims& from, const Dims& sizes);

}  // namespace fxjit::inline v0::ops
