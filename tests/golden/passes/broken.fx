# What the passes rest on is checked before the first of them.
# RUN: not fxjit-opt --passes=cse %s 2>&1 | FileCheck %s
fx 1
typed graph:
  %x : f32[4] = placeholder
  %y = aten::exp(%x)
  %z : f32[4] = aten::log(%y)
  return (%z,)
# CHECK: fxjit-opt: the text breaks a rule of typed graphs: {{.*}}%z reads %y, which has no type
