# RUN: not fxjit-opt %s 2>&1 | FileCheck %s
fx 1
graph:
  %x = placeholder
  %y = operator:add(%x, %z)
  return %y

# CHECK: fxjit-opt: fx text, line 5, column 25: there is no node %z before this line
