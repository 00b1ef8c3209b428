# Calls that nobody uses go; those with an effect stay.
# RUN: fxjit-opt --passes=dce %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %exp : f32[s0, s1] = aten::exp(%x)
  %log : f32[s0, s1] = aten::log(%exp)
  %noise : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
  %neg : f32[s0, s1] = aten::neg(%x)
  return (%neg,)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %noise : f32[s0, s1] = aten::rand_like(%x) !{"effect": "random"}
# CHECK-NEXT: %neg : f32[s0, s1] = aten::neg(%x)
# CHECK-NEXT: return (%neg,)
