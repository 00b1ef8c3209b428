#include "torch/dnnl_linear.h"

#ifdef FXJIT_NO_DNNL

namespace fxjit::inline v0::torch_ {

Result<std::unique_ptr<HostCall>> bind_dnnl_linear(const fx::Node&, const Binder&, const std::vector<int32_t>&) {
  return Failure{"fxjit was built without oneDNN's headers"};
}

void prefer_dnnl(const std::string&) {}

}  // namespace fxjit::inline v0::torch_

#else

#include <c10/core/GradMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <bit>
#include <new>

#include "runtime/fork.h"
#include "runtime/libs/dnnl/linear.h"
#include "runtime/pool.h"
#include "torch/frame_error.h"
#include "torch/host_state.h"
#include "torch/output.h"

namespace fxjit::inline v0::torch_ {
namespace {

constexpr size_t kKeptStates = 4;  // sizes that one call alternates between

struct BlockDeleter {
  void operator()(fxjit_block* b) const { fxjit_block_put(b); }
};
using Block = std::unique_ptr<fxjit_block, BlockDeleter>;

Block get_block(size_t bytes) {
  Block b(fxjit_block_get(bytes));
  if (!b) throw std::bad_alloc();
  return b;
}

struct PrimitiveDeleter {
  void operator()(fxjit_dnnl_linear* p) const { fxjit_dnnl_linear_release(p); }
};
using Primitive = std::unique_ptr<fxjit_dnnl_linear, PrimitiveDeleter>;

const float* floats(const c10::TensorImpl* t) {
  return static_cast<const float*>(t->storage().data()) + t->storage_offset();
}

// What tells one state of a weight from another.
struct WeightState {
  const c10::TensorImpl* tensor = nullptr;
  const float* data = nullptr;
  uint32_t version = 0;
  uint64_t checksum = 0;
  bool operator==(const WeightState&) const = default;

  static WeightState of(const c10::TensorImpl* w) {
    const c10::VariableVersion& counter = w->version_counter();
    return {w, floats(w), counter.enabled() ? counter.current_version() : 0, sample_checksum(floats(w), w->numel())};
  }
};

struct Packed {
  WeightState weight;
  Block memory;
};

struct State {
  fxjit_dnnl_shape shape;
  Primitive primitive;  // null: the library refused this shape
  std::shared_ptr<const Packed> packed;
};

bool same(const fxjit_dnnl_shape& a, const fxjit_dnnl_shape& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k && a.bias == b.bias && a.threads == b.threads;
}

bool plain(const c10::TensorImpl* t) {
  return t->dtype() == caffe2::TypeMeta::Make<float>() && t->device_type() == c10::DeviceType::CPU &&
         t->is_contiguous() && t->numel() > 0;
}

class DnnlLinear final : public HostCall {
 public:
  DnnlLinear(int32_t x, int32_t w, int32_t b, int32_t y, std::unique_ptr<AtenCall> aten)
      : x_(x), w_(w), b_(b), y_(y), aten_(std::move(aten)) {}

  std::string name() const override { return "oneDNN linear"; }

  fxjit_status run(fxjit_frame* frame) const noexcept override {
    try {
      Inputs in{slot(frame, x_), slot(frame, w_), b_ < 0 ? nullptr : slot(frame, b_)};
      if (!fits(in) || !allowed(frame, in)) return aten_->run(frame);
      int64_t n = in.w->size(0), k = in.w->size(1);
      fxjit_dnnl_shape shape{in.x->numel() / k, n, k, in.b != nullptr, frame->threads};
      std::shared_ptr<const State> state = find(shape, in.w);
      if (!state->primitive) return aten_->run(frame);
      return compute(frame, in, *state);
    } catch (...) {
      return catch_into(frame);
    }
  }

 private:
  struct Inputs {
    c10::TensorImpl* x;
    c10::TensorImpl* w;
    c10::TensorImpl* b;
  };
  using States = std::vector<std::shared_ptr<const State>>;

  static c10::TensorImpl* slot(fxjit_frame* frame, int32_t i) { return static_cast<c10::TensorImpl*>(frame->slots[i]); }

  static bool fits(const Inputs& in) {
    if (!plain(in.x) || !plain(in.w) || in.w->dim() != 2 || in.x->dim() < 1) return false;
    if (in.x->size(in.x->dim() - 1) != in.w->size(1)) return false;  // ATen raises
    return !in.b || (plain(in.b) && in.b->dim() == 1 && in.b->size(0) == in.w->size(0));
  }

  static bool allowed(const fxjit_frame* frame, const Inputs& in) {
    if (fxjit_in_fork_child()) return false;  // eager's libraries are as lost there; let them decide
    c10::DispatchKeySet excluded(c10::DispatchKeySet::RAW, frame->words[1]);
    if (!excluded.has(c10::DispatchKey::AutocastCPU)) return false;
    if (matmul_precision_lowered()) return false;
    if (!c10::GradMode::is_enabled()) return true;
    return !in.x->requires_grad() && !in.w->requires_grad() && !(in.b && in.b->requires_grad());
  }

  fxjit_status compute(fxjit_frame* frame, const Inputs& in, const State& state) const {
    c10::SmallVector<int64_t, 6> sizes(in.x->sizes().begin(), in.x->sizes().end());
    sizes.back() = state.shape.n;
    c10::SmallVector<int64_t, 6> strides(sizes.size());
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) strides[i] = step;
    void* y = nullptr;
    auto out = make_output(DType::Float32, static_cast<int32_t>(sizes.size()), sizes.data(), strides.data(), &y);
    Block scratch = get_block(fxjit_dnnl_linear_scratch_bytes(state.primitive.get()));
    int status = fxjit_dnnl_linear_run(state.primitive.get(), floats(in.x), state.packed->memory->data,
                                       in.b ? floats(in.b) : nullptr, static_cast<float*>(y), scratch->data);
    if (status != 0) return aten_->run(frame);  // nothing of its result has been shown
    frame->slots[y_] = out.release();
    return FXJIT_OK;
  }

  // The state for this shape and weight, made where there is none. Readers never wait; of two makers the later one's
  // list stays, and the other's state serves its own call.
  std::shared_ptr<const State> find(const fxjit_dnnl_shape& shape, const c10::TensorImpl* w) const {
    WeightState weight = WeightState::of(w);
    std::shared_ptr<const States> states = states_.load(std::memory_order_acquire);
    if (states)
      for (const auto& s : *states)
        if (same(s->shape, shape) && (!s->primitive || s->packed->weight == weight)) return s;
    std::shared_ptr<const State> made = make(shape, weight, states.get());
    auto list = std::make_shared<States>(States{made});
    if (states)
      for (const auto& s : *states)
        if (list->size() < kKeptStates && !same(s->shape, shape)) list->push_back(s);
    states_.store(std::move(list), std::memory_order_release);
    return made;
  }

  static std::shared_ptr<const State> make(const fxjit_dnnl_shape& shape, const WeightState& weight,
                                           const States* others) {
    auto state = std::make_shared<State>();
    state->shape = shape;
    state->primitive.reset(fxjit_dnnl_linear_get(&shape, nullptr));
    if (!state->primitive) return state;
    if (others)
      for (const auto& o : *others)
        if (o->primitive && o->packed->weight == weight &&
            fxjit_dnnl_linear_same_layout(o->primitive.get(), state->primitive.get()))
          state->packed = o->packed;
    if (state->packed) return state;
    auto packed =
        std::make_shared<Packed>(Packed{weight, get_block(fxjit_dnnl_linear_packed_bytes(state->primitive.get()))});
    if (fxjit_dnnl_linear_pack(state->primitive.get(), weight.data, packed->memory->data) != 0) {
      state->primitive.reset();
    }
    state->packed = std::move(packed);
    return state;
  }

  int32_t x_, w_, b_, y_;
  std::unique_ptr<AtenCall> aten_;
  mutable std::atomic<std::shared_ptr<const States>> states_;
};

}  // namespace

uint64_t sample_checksum(const float* data, int64_t count) {
  constexpr int64_t kSamples = 64;
  const int64_t n = std::min(count, kSamples);
  const int64_t step = n > 1 ? (count - 1) / (n - 1) : 0;
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t bits = std::bit_cast<uint32_t>(data[i == n - 1 ? count - 1 : i * step]);
    // Independent products: the loads overlap, which a chained hash would not let them.
    sum += (bits + static_cast<uint64_t>(i)) * (0x9e3779b97f4a7c15ull + 2 * static_cast<uint64_t>(i));
  }
  return sum;
}

Result<std::unique_ptr<HostCall>> bind_dnnl_linear(const fx::Node& node, const Binder& binder,
                                                   const std::vector<int32_t>& results) {
  if (node.callable().qualified_name() != "aten::linear") return Failure{"not a linear"};
  if (results.size() != 1 || results[0] < 0) return Failure{"the result of linear is not used"};
  if (const char* problem = fxjit_dnnl_problem()) return Failure{problem};
  for (size_t i = 0; i < node.args().size(); ++i) {
    const fx::Node* n = node.arg(i).node_or_null();
    if (!n) continue;
    if (n->tensor_type() && n->tensor_type()->dtype != DType::Float32)
      return Failure{std::string("oneDNN runs linear in f32 only, not ") + to_text(n->tensor_type()->dtype)};
    if (n->tensor_type() && n->tensor_type()->device != DeviceKind::CPU)
      return Failure{"oneDNN runs linear on the CPU only"};
  }
  auto aten = AtenCall::bind(node, binder, results);
  if (!aten) return aten.failure();
  const fx::Node* bias = node.args().size() > 2 ? node.arg(2).node_or_null() : nullptr;
  return std::unique_ptr<HostCall>(new DnnlLinear(binder.slot_of(node.arg(0).as_node()),
                                                  binder.slot_of(node.arg(1).as_node()),
                                                  bias ? binder.slot_of(bias) : -1, results[0], *std::move(aten)));
}

void prefer_dnnl(const std::string& path) { fxjit_dnnl_set_path(path.c_str()); }

}  // namespace fxjit::inline v0::torch_

#endif  // FXJIT_NO_DNNL
