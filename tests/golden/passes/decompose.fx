# A softmax becomes reductions over rows and elementwise operators; half types are widened first.
# RUN: fxjit-opt --passes=decompose %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f16[s0, s1] = placeholder
  %_softmax : f16[s0, s1] = aten::_softmax(%x, -1, False)
  return (%_softmax,)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f16[s0, s1] = placeholder
# CHECK-NEXT: %to : f32[s0, s1] = aten::to.dtype(%x, torch.float32, False, False, None)
# CHECK-NEXT: %amax : f32[s0, 1] = aten::amax(%to, [1], True)
# CHECK-NEXT: %sub : f32[s0, s1] = aten::sub.Tensor(%to, %amax, 1)
# CHECK-NEXT: %exp : f32[s0, s1] = aten::exp(%sub)
# CHECK-NEXT: %sum_1 : f32[s0, 1] = aten::sum.dim_IntList(%exp, [1], True, None)
# CHECK-NEXT: %reciprocal : f32[s0, 1] = aten::reciprocal(%sum_1)
# CHECK-NEXT: %mul : f32[s0, s1] = aten::mul.Tensor(%exp, %reciprocal)
# CHECK-NEXT: %to_1 : f16[s0, s1] = aten::to.dtype(%mul, torch.float16, False, False, None)
# CHECK-NEXT: return (%to_1,)
