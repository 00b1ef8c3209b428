# Equal pure calls become one; random ones stay two.
# RUN: fxjit-opt --passes=cse %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %exp : f32[s0, s1] = aten::exp(%x)
  %exp_1 : f32[s0, s1] = aten::exp(%x)
  %add : f32[s0, s1] = aten::add.Tensor(%exp, %exp_1, 1)
  %noise : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
  %noise_1 : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
  %mul : f32[s0, s1] = aten::mul.Tensor(%noise, %noise_1)
  return (%add, %mul)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %exp : f32[s0, s1] = aten::exp(%x)
# CHECK-NEXT: %add : f32[s0, s1] = aten::add.Tensor(%exp, %exp, 1)
# CHECK-NEXT: %noise : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
# CHECK-NEXT: %noise_1 : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
# CHECK-NEXT: %mul : f32[s0, s1] = aten::mul.Tensor(%noise, %noise_1)
# CHECK-NEXT: return (%add, %mul)
