# Operators that change no value become their operand; those on one number throughout become that number.
# RUN: fxjit-opt --passes=fold %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %mul : f32[s0, s1] = aten::mul.Tensor(%x, 1.0)
  %exp : f32[s0, s1] = aten::exp(%mul)
  %full : f32[s0, s1] = aten::full_like(%x, 2.0, None, None, None, None, None)
  %neg : f32[s0, s1] = aten::neg(%full)
  %add : f32[s0, s1] = aten::add.Tensor(%exp, %neg, 3)
  return (%add,)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %exp : f32[s0, s1] = aten::exp(%x)
# CHECK-NEXT: %full : f32[s0, s1] = aten::full_like(%x, 2.0, None, None, None, None, None)
# CHECK-NEXT: %full_like : f32[s0, s1] = aten::full_like(%full, -2.0, torch.float32, None, None, None, None)
# CHECK-NEXT: %add : f32[s0, s1] = aten::add.Tensor(%exp, %full_like, 3)
# CHECK-NEXT: return (%add,)
