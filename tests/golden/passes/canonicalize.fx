# Calls that give back their operand become it.
# RUN: fxjit-opt --passes=canonicalize %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %exp : f32[s0, s1] = aten::exp(%x)
  %to : f32[s0, s1] = aten::to.dtype(%exp, torch.float32, False, False, None)
  %contiguous : f32[s0, s1] = aten::contiguous(%to, torch.contiguous_format)
  %log : f32[s0, s1] = aten::log(%contiguous)
  return (%log,)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %exp : f32[s0, s1] = aten::exp(%x)
# CHECK-NEXT: %log : f32[s0, s1] = aten::log(%exp)
# CHECK-NEXT: return (%log,)
