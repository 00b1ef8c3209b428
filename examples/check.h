// What the C++ examples share: a check that ends the program with an error.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>

#include <cstdlib>
#include <iostream>

inline void check(bool ok, const char* what) {
  std::cout << (ok ? "ok: " : "WRONG: ") << what << "\n";
  if (!ok) std::exit(EXIT_FAILURE);
}

inline bool close(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() && at::allclose(a, b, 1e-4, 1e-5);
}
