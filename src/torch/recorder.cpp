#include "torch/recorder.h"

#include <ATen/core/enum_tag.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <optional>

#include "torch/host_state.h"
#include "torch/type_import.h"

namespace fxjit::inline v0::torch_ {
namespace {

using Stack = std::vector<c10::IValue>;

bool same_metadata(const TensorInfo& info, const at::Tensor& t) {
  if (!info.supported) return true;
  return info.dtype == t.scalar_type() && t.sizes() == c10::IntArrayRef(info.sizes) &&
         t.strides() == c10::IntArrayRef(info.strides) && t.storage_offset() == info.storage_offset;
}

// Those without the tag that say so.
bool reads_data(const c10::OperatorHandle& op) {
  static constexpr std::array<std::string_view, 9> names = {
      "aten::item",        "aten::is_nonzero",   "aten::_local_scalar_dense", "aten::equal",    "aten::allclose",
      "aten::resolve_neg", "aten::resolve_conj", "aten::is_same_size",        "aten::is_set_to"};
  const std::string& name = op.operator_name().name;
  // is_same_size and is_set_to hand over shapes and identities: as untraceable as data.
  return std::find(names.begin(), names.end(), name) != names.end();
}

uint32_t flags_of(const c10::OperatorHandle& op) {
  uint32_t flags = 0;
  for (at::Tag tag : op.getTags()) {
    if (tag == at::Tag::data_dependent_output) flags |= kDataRead;
    if (tag == at::Tag::dynamic_output_shape) flags |= kDynamicShape;
    if (tag == at::Tag::nondeterministic_seeded) flags |= kRandom;
    if (tag == at::Tag::inplace_view) flags |= kMetadata;
  }
  if (reads_data(op)) flags |= kDataRead;
  if (op.schema().is_mutable()) flags |= kMutates;
  return flags;
}

// The tag of indexing is for masks: by integers, the result has the indices' size.
bool has_mask(const RecordedCall& call, const std::vector<RecordedValue>& values) {
  const auto& indices = call.args.at(1).items;
  return std::any_of(indices.begin(), indices.end(), [&](const RecordedArg& a) {
    if (a.kind != RecordedArg::Tensor) return false;
    const c10::ScalarType type = values[static_cast<size_t>(a.value)].info.dtype;
    return type == c10::ScalarType::Bool || type == c10::ScalarType::Byte;
  });
}

bool autocast_on() {
  const auto keys = c10::impl::tls_local_dispatch_key_set();
  return !(keys.excluded_.has(c10::DispatchKey::AutocastCPU) && keys.excluded_.has(c10::DispatchKey::AutocastCUDA));
}

bool is_plain(const c10::IValue& v) {
  return v.isNone() || v.isBool() || v.isInt() || v.isDouble() || v.isComplexDouble() || v.isString() || v.isDevice() ||
         v.isList() || v.isTuple();
}

c10::Scalar wrapped_value(const at::Tensor& t) {
  const void* data = t.storage().data();
  switch (t.scalar_type()) {
    case c10::ScalarType::Bool:
      return *static_cast<const bool*>(data);
    case c10::ScalarType::Double:
      return *static_cast<const double*>(data);
    case c10::ScalarType::ComplexDouble:
      return *static_cast<const c10::complex<double>*>(data);
    default:  // the dispatcher makes no others
      return *static_cast<const int64_t*>(data);
  }
}

bool is_wrapped_number(const at::Tensor& t) {
  if (!t.unsafeGetTensorImpl()->is_wrapped_number() || t.dim() != 0 || !t.device().is_cpu()) return false;
  auto type = t.scalar_type();
  return type == c10::ScalarType::Bool || type == c10::ScalarType::Double || type == c10::ScalarType::ComplexDouble ||
         type == c10::ScalarType::Long;
}

// Composites that end in as_strided_ where the operand is channels-last, which a graph cannot say of its values.
bool restrides_result(const c10::OperatorHandle& op, const Stack& stack) {
  const std::string& name = op.operator_name().name;
  if (name != "aten::adaptive_avg_pool2d" && name != "aten::adaptive_avg_pool3d") return false;
  const c10::IValue& operand = stack[stack.size() - op.schema().arguments().size()];
  return operand.isTensor() && operand.toTensor().defined() &&
         operand.toTensor().suggest_memory_format() != c10::MemoryFormat::Contiguous;
}

}  // namespace

// Addresses of tensors and storages; weak references keep them from being used again.
struct Recorder::Table {
  struct Entry {
    ValueId id;
    c10::weak_intrusive_ptr<c10::TensorImpl> alive;
  };
  std::unordered_map<const c10::TensorImpl*, Entry> tensors;
  struct StorageEntry {
    int32_t number;
    c10::weak_intrusive_ptr<c10::StorageImpl> alive;
  };
  std::unordered_map<const c10::StorageImpl*, StorageEntry> storages;

  int32_t storage_number(const at::Tensor& t) {
    if (!t.has_storage()) return -1;
    const c10::Storage& s = t.storage();
    auto number = static_cast<int32_t>(storages.size());
    auto it = storages.find(s.unsafeGetStorageImpl());
    if (it != storages.end()) return it->second.number;
    storages.emplace(s.unsafeGetStorageImpl(), StorageEntry{number, s.getWeakStorageImpl()});
    return number;
  }
};

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), table_(std::make_unique<Table>()) {}
Recorder::~Recorder() = default;

std::string RecordedCall::name() const { return c10::toString(op.operator_name()); }

ValueId Recorder::find(const at::Tensor& t) const {
  auto it = table_->tensors.find(t.unsafeGetTensorImpl());
  return it == table_->tensors.end() ? -1 : it->second.id;
}

at::Tensor Recorder::tensor(ValueId id) const {
  for (const auto& [address, entry] : table_->tensors)
    if (entry.id == id)
      if (auto alive = entry.alive.lock()) return at::Tensor(std::move(alive));
  return {};
}

ValueId Recorder::add(const at::Tensor& t, Origin origin, int32_t index, int32_t result) {
  auto id = static_cast<ValueId>(values_.size());
  values_.push_back({origin, index, result, scope_, table_->storage_number(t), describe(t)});
  table_->tensors.emplace(t.unsafeGetTensorImpl(),
                          Table::Entry{id, c10::weak_intrusive_ptr<c10::TensorImpl>(t.getIntrusivePtr())});
  return id;
}

ValueId Recorder::add_input(const at::Tensor& t) {
  ValueId id = find(t);
  if (id < 0) id = add(t, Origin::Input, static_cast<int32_t>(inputs_.size()), -1);
  inputs_.push_back(id);
  return id;
}

ValueId Recorder::add_attribute(const at::Tensor& t, std::string path) {
  ValueId id = find(t);
  if (id >= 0) return id;
  id = add(t, Origin::Attribute, static_cast<int32_t>(attributes_.size()), -1);
  attributes_.push_back({std::move(path), id, t});
  return id;
}

ValueId Recorder::lookup(const at::Tensor& t, uint32_t* flags) {
  ValueId id = find(t);
  if (id < 0) id = add(t, Origin::Unknown, -1, -1);
  const RecordedValue& value = values_[static_cast<size_t>(id)];
  if (value.origin == Origin::Unknown) *flags |= kUnknownInput;
  if (!same_metadata(value.info, t)) *flags |= kChangedInput;
  return id;
}

RecordedArg Recorder::argument(const c10::IValue& v, uint32_t* flags) {
  RecordedArg arg;
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    if (!t.defined()) return arg;
    if (find(t) < 0 && is_wrapped_number(t)) {
      arg.constant = wrapped_value(t);
      return arg;
    }
    arg.kind = RecordedArg::Tensor;
    arg.value = lookup(t, flags);
    return arg;
  }
  if (v.isTensorList() || v.isOptionalTensorList()) {
    arg.kind = RecordedArg::List;
    for (const c10::IValue& item : v.toListRef()) arg.items.push_back(argument(item, flags));
    return arg;
  }
  if (!is_plain(v)) *flags |= kOpaqueValue;
  arg.constant = v;
  return arg;
}

RecordedArg Recorder::result(const c10::IValue& v, int32_t call, int32_t* place, uint32_t* flags) {
  RecordedArg out;
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    int32_t at = (*place)++;
    if (!t.defined()) return out;
    out.kind = RecordedArg::Tensor;
    out.value = find(t);
    // A known tensor is an argument handed through: in-place operators, `to` and `contiguous` with nothing to do.
    if (out.value < 0) out.value = add(t, Origin::Result, call, at);
    return out;
  }
  if (v.isTensorList() || v.isOptionalTensorList()) {
    out.kind = RecordedArg::List;
    for (const c10::IValue& item : v.toListRef()) out.items.push_back(result(item, call, place, flags));
    return out;
  }
  if (!is_plain(v)) *flags |= kOpaqueValue;
  out.constant = v;
  return out;
}

bool Recorder::runs_through(const c10::OperatorHandle& op, const Stack& stack) const {
  if (!options_.has_row || !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) return false;
  return !reads_data(op) && !restrides_result(op, stack) && !options_.has_row(c10::toString(op.operator_name()));
}

void Recorder::refresh_metadata(const RecordedArg& arg, const c10::IValue& v, uint32_t* flags) {
  if (arg.kind != RecordedArg::Tensor || !v.isTensor()) return;
  RecordedValue& value = values_[static_cast<size_t>(arg.value)];
  if (same_metadata(value.info, v.toTensor()) && value.storage == table_->storage_number(v.toTensor())) return;
  *flags |= kMetadata;
  value.info = describe(v.toTensor());
  value.storage = table_->storage_number(v.toTensor());
}

void Recorder::run(const c10::OperatorHandle& op, c10::DispatchKeySet below, Stack* stack) {
  std::optional<RecordedCall> call;
  bool through = false;
  observe([&] {
    through = runs_through(op, *stack);
    if (through)
      composites_.insert(c10::toString(op.operator_name()));
    else
      call = begin_call(op, *stack);
  });
  if (through) return op.redispatchBoxed(below, stack);
  {
    // The arguments stay on the stack and nowhere else: one more strong reference would change what make_variable and
    // in-place operators do.
    c10::impl::ExcludeDispatchKeyGuard off(c10::DispatchKey::DeferredInit);
    op.redispatchBoxed(below, stack);
  }
  if (call) observe([&] { end_call(*std::move(call), *stack); });
}

// The operator runs, whatever becomes of our notes on it.
template <class F>
void Recorder::observe(F f) {
  if (failure_) return;
  try {
    if (options_.probe) options_.probe();
    f();
  } catch (const std::exception&) {
    failure_ = std::current_exception();
  }
}

void Recorder::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

RecordedCall Recorder::begin_call(const c10::OperatorHandle& op, const Stack& stack) {
  RecordedCall call{op, scope_, flags_of(op), global_flags(), {}, {}};
  if (autocast_on()) call.flags |= kAutocast;
  const size_t num_args = op.schema().arguments().size();
  for (size_t i = stack.size() - num_args; i < stack.size(); ++i) call.args.push_back(argument(stack[i], &call.flags));
  if (call.op.operator_name().name == "aten::index" && !has_mask(call, values_))
    call.flags &= ~static_cast<uint32_t>(kDynamicShape);
  return call;
}

void Recorder::end_call(RecordedCall call, const Stack& stack) {
  const size_t num_results = call.op.schema().returns().size();
  int32_t place = 0;
  auto number = static_cast<int32_t>(calls_.size());
  for (size_t i = stack.size() - num_results; i < stack.size(); ++i) {
    call.results.push_back(result(stack[i], number, &place, &call.flags));
    if (call.flags & kMutates) refresh_metadata(call.results.back(), stack[i], &call.flags);
  }
  calls_.push_back(std::move(call));
}

}  // namespace fxjit::inline v0::torch_
