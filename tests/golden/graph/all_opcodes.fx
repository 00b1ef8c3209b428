# RUN: fxjit-opt %s | FileCheck %s
# RUN: fxjit-opt %s | fxjit-opt - | FileCheck %s
# RUN: fxjit-opt --passes=dce %s | FileCheck %s --check-prefix=DEAD
# RUN: fxjit-opt --emit=fx %s | FileCheck %s --check-prefix=FX
fx 1
graph:
  %x : f32[4, s0] = placeholder x
  %k = placeholder(1.50)
  %w = get_attr layer.weight
  %unused = call_function operator.neg(%x)
  %add = operator:add(%x,%w, alpha = 2)
  %m = call_module layer.fc(%add, [1, (2,), {"a": slice(None, 3, None)}], dtype=torch.float16, device=device("cuda:0"))
  %f = aten::gelu(%m) !{"stack_trace": "model.py:3"}
  %t = call_method "float"(%f)
  return (%t, %k)

# CHECK: fx 1
# CHECK-NEXT: graph:
# CHECK-NEXT: %x : f32[4, s0] = placeholder
# CHECK-NEXT: %k = placeholder(1.5)
# CHECK-NEXT: %w = get_attr layer.weight
# CHECK-NEXT: %unused = _operator:neg(%x)
# CHECK-NEXT: %add = _operator:add(%x, %w, alpha=2)
# CHECK-NEXT: %m = call_module layer.fc(%add, [1, (2,), {"a": slice(None, 3, None)}], dtype=torch.float16, device=device("cuda:0"))
# CHECK-NEXT: %f = aten::gelu(%m) !{"stack_trace": "model.py:3"}
# CHECK-NEXT: %t = call_method float(%f)
# CHECK-NEXT: return (%t, %k)

# DEAD: %w = get_attr layer.weight
# DEAD-NOT: %unused
# DEAD: return (%t, %k)

# FX: graph():
# FX: %add : [num_users=1] = call_function[target=operator.add](args = (%x, %w), kwargs = {alpha: 2})
# FX: return (t, k)
