# A softmax and what is before it: one kernel over rows of any size. Without --emit the graph, with it the kernel.
# RUN: fxjit-opt --passes=functionalize,decompose,fold,cse,dce,fuse %s | FileCheck %s
# RUN: fxjit-opt --passes=functionalize,decompose,fold,cse,dce,fuse --emit=kernels %s | fxjit-opt --passes=simplify - | FileCheck %s --check-prefix=KERNEL
fx 1
symbol s0 : size(0, 0) = 6
symbol s1 : size(0, 1) = 5
typed graph:
  %x : f32[s0, s1] = placeholder
  %y : f32[s0, s1] = placeholder
  %mul : f32[s0, s1] = aten::mul.Tensor(%x, 0.125)
  %add : f32[s0, s1] = aten::add.Tensor(%mul, %y, 1)
  %softmax : f32[s0, s1] = aten::softmax.int(%add, -1, None)
  %t : f32[s1, s0] (1, s1) = aten::t(%softmax)
  return (%softmax, %t)
# KERNEL: kernel
# KERNEL-NEXT: axes parallel, reduction
# KERNEL: %0 = load b0 : f32
# KERNEL-NEXT: %1 = scalar s0 : f32
# KERNEL-NEXT: %2 = mul %0, %1 : f32
# KERNEL: %{{[0-9]+}} = reduce max
# KERNEL: %{{[0-9]+}} = reduce sum
# KERNEL: store b2
# GOLDEN
# CHECK: fx 1
# CHECK-NEXT: value functional = True
# CHECK-NEXT: symbol s0 : size(0, 0) = 6
# CHECK-NEXT: symbol s1 : size(0, 1) = 5
# CHECK-NEXT: typed graph:
# CHECK-NEXT: %x : f32[s0, s1] = placeholder
# CHECK-NEXT: %y : f32[s0, s1] = placeholder
# CHECK-NEXT: %fused_mul_add_amax_sub_exp_sum_reciprocal : f32[s0, s1] = kernel:fused_mul_add_amax_sub_exp_sum_reciprocal(%x, %y)
# CHECK-NEXT: %t : f32[s1, s0] (1, s1) = aten::t(%fused_mul_add_amax_sub_exp_sum_reciprocal)
# CHECK-NEXT: return (%fused_mul_add_amax_sub_exp_sum_reciprocal, %t)
