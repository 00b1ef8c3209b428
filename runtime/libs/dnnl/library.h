// The C functions of oneDNN that fxjit calls, looked up in the library at its first use.
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

#include <string>

static_assert(DNNL_VERSION_MAJOR == 3, "compiled against oneDNN 3's headers only: torch ships others");

namespace fxjit_dnnl {

#define FXJIT_DNNL_FUNCTIONS(X)              \
  X(dnnl_version)                            \
  X(dnnl_engine_create)                      \
  X(dnnl_stream_create)                      \
  X(dnnl_stream_destroy)                     \
  X(dnnl_memory_desc_create_with_tag)        \
  X(dnnl_memory_desc_destroy)                \
  X(dnnl_memory_desc_get_size)               \
  X(dnnl_memory_desc_equal)                  \
  X(dnnl_memory_create)                      \
  X(dnnl_memory_destroy)                     \
  X(dnnl_memory_set_data_handle)             \
  X(dnnl_primitive_attr_create)              \
  X(dnnl_primitive_attr_destroy)             \
  X(dnnl_primitive_attr_set_scratchpad_mode) \
  X(dnnl_matmul_primitive_desc_create)       \
  X(dnnl_reorder_primitive_desc_create)      \
  X(dnnl_primitive_desc_query_md)            \
  X(dnnl_primitive_desc_destroy)             \
  X(dnnl_primitive_create)                   \
  X(dnnl_primitive_execute)                  \
  X(dnnl_primitive_destroy)

struct Library {
  std::string problem;  // empty: all functions are there
  int version = 0;
  dnnl_engine_t engine = nullptr;  // the CPU
#define FXJIT_DNNL_MEMBER(name) decltype(&::name) name = nullptr;
  FXJIT_DNNL_FUNCTIONS(FXJIT_DNNL_MEMBER)
#undef FXJIT_DNNL_MEMBER
};

// Opened once; never closed, since its threads and cached code stay.
const Library& library();

}  // namespace fxjit_dnnl
