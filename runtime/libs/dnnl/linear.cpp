#include "runtime/libs/dnnl/linear.h"

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/libs/dnnl/library.h"

namespace fxjit_dnnl {
namespace {

constexpr size_t kKeptShapes = 256;

bool operator==(const fxjit_dnnl_shape& a, const fxjit_dnnl_shape& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.bias == b.bias && a.threads == b.threads;
}

// A oneDNN handle that is destroyed with its owner.
template <class T>
class Handle {
 public:
  using Destroy = dnnl_status_t (*)(T);
  Handle() = default;
  Handle(T value, Destroy destroy) : value_(value), destroy_(destroy) {}
  Handle(Handle&& o) noexcept : value_(std::exchange(o.value_, nullptr)), destroy_(o.destroy_) {}
  Handle& operator=(Handle&& o) noexcept {
    std::swap(value_, o.value_);
    std::swap(destroy_, o.destroy_);
    return *this;
  }
  ~Handle() {
    if (value_) destroy_(value_);
  }
  T get() const { return value_; }

 private:
  T value_ = nullptr;
  Destroy destroy_ = nullptr;
};

using Desc = Handle<dnnl_memory_desc_t>;

Desc desc(std::initializer_list<int64_t> sizes, dnnl_format_tag_t tag) {
  const Library& lib = library();
  dnnl_dims_t dims{};
  std::copy(sizes.begin(), sizes.end(), dims);
  dnnl_memory_desc_t d = nullptr;
  lib.dnnl_memory_desc_create_with_tag(&d, static_cast<int>(sizes.size()), dims, dnnl_f32, tag);
  return {d, lib.dnnl_memory_desc_destroy};
}

}  // namespace

// What one running call needs of its own: memory objects and streams are not to be shared between threads.
struct Arguments {
  Handle<dnnl_memory_t> x, w, b, y, scratch;
  Handle<dnnl_stream_t> stream;
};

}  // namespace fxjit_dnnl

using fxjit_dnnl::Arguments;
using fxjit_dnnl::Handle;

struct fxjit_dnnl_linear {
  std::atomic<int> references{1};
  fxjit_dnnl_shape shape;
  Handle<dnnl_primitive_desc_t> description;
  Handle<dnnl_primitive_t> primitive;
  const_dnnl_memory_desc_t packed = nullptr;  // inside `description`
  const_dnnl_memory_desc_t scratch = nullptr;
  std::mutex mutex;
  std::vector<std::unique_ptr<Arguments>> idle;

  std::unique_ptr<Arguments> take() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        auto a = std::move(idle.back());
        idle.pop_back();
        return a;
      }
    }
    return make_arguments();
  }
  void give(std::unique_ptr<Arguments> a) {
    std::lock_guard lock(mutex);
    if (idle.size() < 16) idle.push_back(std::move(a));
  }
  std::unique_ptr<Arguments> make_arguments() const;
  bool create();
};

namespace fxjit_dnnl {
namespace {

Handle<dnnl_memory_t> memory(const_dnnl_memory_desc_t d) {
  dnnl_memory_t m = nullptr;
  library().dnnl_memory_create(&m, d, library().engine, DNNL_MEMORY_NONE);
  return {m, library().dnnl_memory_destroy};
}

Handle<dnnl_stream_t> stream() {
  dnnl_stream_t s = nullptr;
  library().dnnl_stream_create(&s, library().engine, dnnl_stream_default_flags);
  return {s, library().dnnl_stream_destroy};
}

// The primitives used last, most recent first. Linear search: lookups happen when a caller's shape changes.
class Cache {
 public:
  static Cache& shared() {
    static Cache* c = new Cache;  // leaked: calls may come during exit
    return *c;
  }

  fxjit_dnnl_linear* find(const fxjit_dnnl_shape& shape) {
    std::lock_guard lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (!((*it)->shape == shape)) continue;
      kept_.splice(kept_.begin(), kept_, it);
      (*it)->references.fetch_add(1, std::memory_order_relaxed);
      return *it;
    }
    return nullptr;
  }

  void insert(fxjit_dnnl_linear* linear) {
    fxjit_dnnl_linear* dropped = nullptr;
    {
      std::lock_guard lock(mutex_);
      linear->references.fetch_add(1, std::memory_order_relaxed);
      kept_.push_front(linear);
      if (kept_.size() > kKeptShapes) {
        dropped = kept_.back();
        kept_.pop_back();
      }
    }
    fxjit_dnnl_linear_release(dropped);
  }

 private:
  std::mutex mutex_;
  std::list<fxjit_dnnl_linear*> kept_;
};

}  // namespace
}  // namespace fxjit_dnnl

using fxjit_dnnl::library;

std::unique_ptr<Arguments> fxjit_dnnl_linear::make_arguments() const {
  const auto& lib = library();
  auto query = [&](int arg) {
    return lib.dnnl_primitive_desc_query_md(description.get(), dnnl_query_exec_arg_md, arg);
  };
  auto a = std::make_unique<Arguments>();
  a->x = fxjit_dnnl::memory(query(DNNL_ARG_SRC));
  a->w = fxjit_dnnl::memory(packed);
  if (shape.bias) a->b = fxjit_dnnl::memory(query(DNNL_ARG_BIAS));
  a->y = fxjit_dnnl::memory(query(DNNL_ARG_DST));
  a->scratch = fxjit_dnnl::memory(scratch);
  a->stream = fxjit_dnnl::stream();
  return a;
}

bool fxjit_dnnl_linear::create() {
  const auto& lib = library();
  auto x = fxjit_dnnl::desc({shape.m, shape.k}, dnnl_ab);
  auto w = fxjit_dnnl::desc({shape.k, shape.n}, dnnl_format_tag_any);
  auto b = fxjit_dnnl::desc({1, shape.n}, dnnl_ab);
  auto y = fxjit_dnnl::desc({shape.m, shape.n}, dnnl_ab);
  dnnl_primitive_attr_t attr = nullptr;
  if (lib.dnnl_primitive_attr_create(&attr) != dnnl_success) return false;
  Handle<dnnl_primitive_attr_t> attr_owner(attr, lib.dnnl_primitive_attr_destroy);
  // The library's own scratchpad belongs to the thread that made the primitive.
  lib.dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  dnnl_primitive_desc_t pd = nullptr;
  if (lib.dnnl_matmul_primitive_desc_create(&pd, lib.engine, x.get(), w.get(), shape.bias ? b.get() : nullptr, y.get(),
                                            attr) != dnnl_success)
    return false;
  description = {pd, lib.dnnl_primitive_desc_destroy};
  dnnl_primitive_t p = nullptr;
  if (lib.dnnl_primitive_create(&p, pd) != dnnl_success) return false;
  primitive = {p, lib.dnnl_primitive_destroy};
  packed = lib.dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  scratch = lib.dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  return packed && scratch;
}

extern "C" {

fxjit_dnnl_linear* fxjit_dnnl_linear_get(const fxjit_dnnl_shape* shape, const char** problem) {
  const auto& lib = library();
  if (!lib.problem.empty()) {
    if (problem) *problem = lib.problem.c_str();
    return nullptr;
  }
  auto& cache = fxjit_dnnl::Cache::shared();
  if (fxjit_dnnl_linear* found = cache.find(*shape)) return found;
  auto linear = std::make_unique<fxjit_dnnl_linear>();
  linear->shape = *shape;
  if (!linear->create()) {
    if (problem) *problem = "oneDNN has no matmul for this shape";
    return nullptr;
  }
  cache.insert(linear.get());
  return linear.release();
}

void fxjit_dnnl_linear_release(fxjit_dnnl_linear* linear) {
  if (linear && linear->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete linear;
}

size_t fxjit_dnnl_linear_packed_bytes(const fxjit_dnnl_linear* linear) {
  return library().dnnl_memory_desc_get_size(linear->packed);
}

size_t fxjit_dnnl_linear_scratch_bytes(const fxjit_dnnl_linear* linear) {
  return library().dnnl_memory_desc_get_size(linear->scratch);
}

int fxjit_dnnl_linear_same_layout(const fxjit_dnnl_linear* a, const fxjit_dnnl_linear* b) {
  return library().dnnl_memory_desc_equal(a->packed, b->packed);
}

int fxjit_dnnl_linear_pack(fxjit_dnnl_linear* linear, const float* w, void* packed) {
  const auto& lib = library();
  // [n, k] row-major is [k, n] column-major.
  auto from = fxjit_dnnl::desc({linear->shape.k, linear->shape.n}, dnnl_ba);
  dnnl_primitive_desc_t pd = nullptr;
  dnnl_status_t s =
      lib.dnnl_reorder_primitive_desc_create(&pd, from.get(), lib.engine, linear->packed, lib.engine, nullptr);
  if (s != dnnl_success) return s;
  Handle<dnnl_primitive_desc_t> pd_owner(pd, lib.dnnl_primitive_desc_destroy);
  dnnl_primitive_t reorder = nullptr;
  s = lib.dnnl_primitive_create(&reorder, pd);
  if (s != dnnl_success) return s;
  Handle<dnnl_primitive_t> owner(reorder, lib.dnnl_primitive_destroy);
  auto source = fxjit_dnnl::memory(from.get());
  auto target = fxjit_dnnl::memory(linear->packed);
  lib.dnnl_memory_set_data_handle(source.get(), const_cast<float*>(w));
  lib.dnnl_memory_set_data_handle(target.get(), packed);
  auto stream = fxjit_dnnl::stream();
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, target.get()}};
  return lib.dnnl_primitive_execute(reorder, stream.get(), 2, args);
}

int fxjit_dnnl_linear_run(fxjit_dnnl_linear* linear, const float* x, const void* packed, const float* b, float* y,
                          void* scratch) {
  const auto& lib = library();
  auto a = linear->take();
  auto set = [&lib](const Handle<dnnl_memory_t>& m, const void* p) {
    lib.dnnl_memory_set_data_handle(m.get(), const_cast<void*>(p));
  };
  set(a->x, x);
  set(a->w, packed);
  set(a->y, y);
  set(a->scratch, scratch);
  dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, a->x.get()},
                             {DNNL_ARG_WEIGHTS, a->w.get()},
                             {DNNL_ARG_DST, a->y.get()},
                             {DNNL_ARG_SCRATCHPAD, a->scratch.get()},
                             {}};
  int count = 4;
  if (linear->shape.bias) {
    set(a->b, b);
    args[count++] = {DNNL_ARG_BIAS, a->b.get()};
  }
  dnnl_status_t s = lib.dnnl_primitive_execute(linear->primitive.get(), a->stream.get(), count, args);
  linear->give(std::move(a));
  return s;  // a CPU stream has run it when execute returns
}

}  // extern "C"
