# In-place operators become pure ones; what they did to an input is copied back behind all other nodes.
# RUN: fxjit-opt --passes=functionalize %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %y : f32[s0, s1] = placeholder
  %add_ : f32[s0, s1] = aten::add_.Tensor(%x, %y, 1)
  %exp : f32[s0, s1] = aten::exp(%x)
  %mul_ : f32[s0, s1] = aten::mul_.Tensor(%exp, 2.0)
  return (%add_, %exp)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: value functional = True
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %y : f32[s0, s1] = placeholder
# CHECK-NEXT: %add : f32[s0, s1] = aten::add.Tensor(%x, %y, 1)
# CHECK-NEXT: %exp : f32[s0, s1] = aten::exp(%add)
# CHECK-NEXT: %mul : f32[s0, s1] = aten::mul.Tensor(%exp, 2.0)
# CHECK-NEXT: %copy_ : f32[s0, s1] = aten::copy_(%x, %add, False)
# CHECK-NEXT: return (%x, %mul)
