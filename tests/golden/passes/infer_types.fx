# Types that were seen in an example call become those that the rules give for the inputs' symbols. A size among the
# arguments is a number: it is guarded.
# RUN: fxjit-opt --passes=infer_types %s | FileCheck %s
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %w : f32[9] = placeholder
  %relu : f32[6, 5] = aten::relu(%x)
  %sum : f32[6] = aten::sum.dim_IntList(%relu, [-1], False, None)
  %reshape : f32[30] = aten::reshape(%relu, [30])
  %t : f32[5, 6] (1, 5) = aten::t(%x)
  return (%sum, %reshape, %t)
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: guard s0*s1 == 30
# CHECK-NEXT: guard 1 < s0*s1
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %w : f32[9] = placeholder
# CHECK-NEXT: %relu : f32[s0, s1] = aten::relu(%x)
# CHECK-NEXT: %sum : f32[s0] = aten::sum.dim_IntList(%relu, [-1], False, None)
# CHECK-NEXT: %reshape : f32[30] = aten::reshape(%relu, [30])
# CHECK-NEXT: %t : f32[s1, s0] (1, s1) = aten::t(%x)
# CHECK-NEXT: return (%sum, %reshape, %t)
