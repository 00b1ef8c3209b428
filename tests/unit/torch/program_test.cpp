// The host table and ATen calls under hand-written `forward` functions.
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "fxjit/fx/graph.h"
#include "runtime/pool.h"
#include "torch/aten_call.h"
#include "torch/convert.h"
#include "torch/frame_error.h"
#include "torch/host_table.h"
#include "torch/tensor_object.h"

namespace fxjit::torch_ {
namespace {

using fx::Argument;

// A graph of calls over placeholders; slots are node ids in order of creation.
class Program : public ::testing::Test {
 protected:
  fx::Node* input(const char* name) {
    fx::Node* n = graph_->placeholder(name);
    slots_[n] = program_.num_slots++;
    program_.num_inputs++;
    return n;
  }
  // Binds `schema`; its first tensor goes to the returned node's slot, further ones to the slots behind.
  fx::Node* call(const char* schema, std::vector<Argument> args, int results = 1, bool* failed = nullptr) {
    fx::Node* n = graph_->call_function(fx::make_ref<AtenCallable>(*find_operator(schema)), Argument::tuple(args));
    slots_[n] = program_.num_slots;
    std::vector<int32_t> places;
    for (int i = 0; i < results; ++i) places.push_back(program_.num_slots++);
    auto slot_of = [&](const fx::Node* of) { return slots_.at(of); };
    auto symbol_of = [&](const Argument& a) -> std::optional<SymbolRef> {
      if (!a.is_int() || a.as_int() < 1000) return std::nullopt;  // in these tests 1000 + i is symbol i
      auto index = static_cast<int32_t>(a.as_int() - 1000);
      return SymbolRef{index, index >= 10};
    };
    auto bound = AtenCall::bind(*n, {slot_of, symbol_of}, places);
    if (failed) *failed = !bound;
    if (!bound) {
      reason_ = bound.reason();
      return n;
    }
    program_.calls.push_back(std::move(bound).value());
    return n;
  }
  int32_t slot(const fx::Node* n) { return slots_.at(n); }

  at::Tensor run(fxjit_specialised forward, std::vector<at::Tensor> in, const int64_t* scalars = nullptr) {
    std::vector<c10::TensorImpl*> raw;
    for (const at::Tensor& t : in) raw.push_back(t.unsafeGetTensorImpl());
    c10::TensorImpl* out[1];
    program_.num_symbols = 16;
    hit_ = run_specialised(forward, program_, raw, scalars, out, host_state());
    return out[0] ? at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim(out[0])) : at::Tensor();
  }

  fx::GraphPtr graph_ = fx::Graph::create();
  HostProgram program_;
  std::map<const fx::Node*, int32_t> slots_;
  std::string reason_;
  bool hit_ = false;
};

// Runs call 0, moves slot 1 (or 2) to the result; inputs are borrowed by the first slots.
template <int inputs>
fxjit_status one_call(fxjit_frame* f, const fxjit_value* in, const int64_t* scalars, fxjit_value* out) {
  for (int i = 0; i < inputs; ++i) f->slots[i] = in[i];
  if (scalars)
    for (int i = 0; i < 16; ++i) f->symbols[i] = scalars[i];
  if (fxjit_status s = f->table->call(f, 0)) return s;
  out[0] = f->slots[inputs];
  f->slots[inputs] = nullptr;
  return FXJIT_OK;
}

TEST_F(Program, RunsAnOperatorOnSlots) {
  fx::Node* x = input("x");
  call("aten::add.Tensor", {x, 2, 3});
  at::Tensor t = at::ones({4});
  auto before = t.use_count();
  EXPECT_TRUE(run(&one_call<1>, {t}).equal(at::ones({4}).mul(7)));
  EXPECT_TRUE(hit_);
  EXPECT_EQ(t.use_count(), before);
  EXPECT_EQ(program_.calls[0]->name(), "aten::add.Tensor");
}

TEST_F(Program, SymbolsBecomeIntsFloatsAndLists) {
  fx::Node* x = input("x");
  call("aten::view", {x, Argument::list({1000, 2})});
  int64_t scalars[16] = {6};
  EXPECT_EQ(run(&one_call<1>, {at::ones({12})}, scalars).sizes(), c10::IntArrayRef({6, 2}));
  scalars[0] = 3;
  EXPECT_EQ(run(&one_call<1>, {at::ones({6})}, scalars).sizes(), c10::IntArrayRef({3, 2}));
}

TEST_F(Program, AFloatSymbolAsTensorDoesNotPromote) {
  fx::Node* x = input("x");
  call("aten::mul.Tensor", {x, 1010});
  int64_t scalars[16] = {};
  double factor = 2.5;
  std::memcpy(&scalars[10], &factor, 8);
  at::Tensor y = run(&one_call<1>, {at::ones({2}, c10::ScalarType::Half)}, scalars);
  EXPECT_EQ(y.scalar_type(), c10::ScalarType::Half);
  EXPECT_EQ(y[0].item<float>(), 2.5);
}

TEST_F(Program, ListsOfSlotsAndSeveralResults) {
  fx::Node* x = input("x");
  fx::Node* y = input("y");
  call("aten::cat", {Argument::list({x, y, x}), 0});
  EXPECT_EQ(run(&one_call<2>, {at::ones({2}), at::ones({3})}).size(0), 7);
}

fxjit_status split(fxjit_frame* f, const fxjit_value* in, const int64_t*, fxjit_value* out) {
  f->slots[0] = in[0];
  if (fxjit_status s = f->table->call(f, 0)) return s;
  out[0] = f->slots[2];  // the second part; the first stays for the host to drop
  f->slots[2] = nullptr;
  return FXJIT_OK;
}

TEST_F(Program, PartsOfAListGoToTheirSlots) {
  fx::Node* x = input("x");
  call("aten::split.Tensor", {x, 2, 0}, 2);
  at::Tensor t = at::rand({4});
  at::Tensor y = run(&split, {t});
  EXPECT_TRUE(y.equal(t.slice(0, 2)));
  EXPECT_TRUE(y.is_view());
  EXPECT_EQ(t.storage().use_count(), 2u);  // t and y: the first part is gone
}

TEST_F(Program, ExceptionsComeThroughUnchangedAndNothingLeaks) {
  fx::Node* x = input("x");
  fx::Node* y = input("y");
  call("aten::add.Tensor", {x, y, 1});
  at::Tensor a = at::ones({2}), b = at::ones({3});
  std::string eager;
  try {
    a.add(b);
  } catch (const c10::Error& e) {
    eager = e.what_without_backtrace();
  }
  try {
    run(&one_call<2>, {a, b});
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_EQ(eager, e.what_without_backtrace());
  }
  EXPECT_EQ(a.use_count(), 1u);
}

fxjit_status refuse(fxjit_frame*, const fxjit_value*, const int64_t*, fxjit_value*) { return FXJIT_GUARD; }
fxjit_status no_memory(fxjit_frame*, const fxjit_value*, const int64_t*, fxjit_value*) { return FXJIT_NO_MEMORY; }

TEST_F(Program, StatusesOfForward) {
  at::Tensor t = at::ones({2});
  EXPECT_FALSE(run(&refuse, {t}).defined());
  EXPECT_FALSE(hit_);
  EXPECT_THROW(run(&no_memory, {t}), RuntimeError);
  fxjit_specialised nothing = [](fxjit_frame*, const fxjit_value*, const int64_t*, fxjit_value*) -> fxjit_status {
    return 0;
  };
  run(nothing, {t});
  EXPECT_TRUE(hit_);
}

// y = 2 * x by a kernel of units of one element.
void twice(int64_t begin, int64_t end, void* ctx) {
  auto* l = static_cast<fxjit_launch*>(ctx);
  for (int64_t i = begin; i < end; ++i)
    static_cast<float*>(l->pointers[1])[i] = 2 * static_cast<const float*>(l->pointers[0])[i];
}

fxjit_status doubled(fxjit_frame* f, const fxjit_value* in, const int64_t* scalars, fxjit_value* out) {
  f->slots[0] = in[0];
  if (fxjit_arena_reserve(f, 1000) != FXJIT_OK) return FXJIT_NO_MEMORY;
  int64_t n = scalars[0], one = 1;
  void* pointers[2] = {f->table->data(f, 0), nullptr};
  if (fxjit_status s = f->table->empty(f, 1, static_cast<int32_t>(DType::Float32), 1, &n, &one, &pointers[1])) return s;
  fxjit_launch launch{pointers, &n, nullptr, nullptr, 0, FXJIT_OK};
  fxjit_launch_kernel(f, &twice, &launch, n, 1000);
  out[0] = f->slots[1];
  f->slots[1] = nullptr;
  return FXJIT_OK;
}

TEST_F(Program, KernelsRunOnTorchsThreads) {
  input("x");
  program_.num_slots = 2;
  at::Tensor x = at::rand({100000}).slice(0, 7);
  int64_t n = x.numel();
  EXPECT_TRUE(run(&doubled, {x}, &n).equal(x.mul(2)));
}

TEST_F(Program, EmptyReportsWhatEagerWouldRaise) {
  input("x");
  program_.num_slots = 2;
  int64_t n = -5;
  EXPECT_THROW(run(&doubled, {at::ones({2})}, &n), c10::Error);
}

TEST_F(Program, ManyThreadsAtOnce) {
  input("x");
  program_.num_slots = 2;
  program_.num_symbols = 16;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        at::Tensor x = at::ones({100 + 1000 * t}).mul(i);
        int64_t n = x.numel();
        c10::TensorImpl* in[1] = {x.unsafeGetTensorImpl()};
        c10::TensorImpl* out[1];
        run_specialised(&doubled, program_, in, &n, out, host_state());
        at::Tensor y(c10::intrusive_ptr<c10::TensorImpl>::reclaim(out[0]));
        if (!y.equal(x.add(x))) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Program, AForkChildRunsInline) {
  input("x");
  program_.num_slots = 2;
  at::Tensor x = at::rand({1 << 20});
  int64_t n = x.numel();
  at::Tensor expected = run(&doubled, {x}, &n);  // the parent's pool has run
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    at::Tensor y = run(&doubled, {x}, &n);
    _exit(std::memcmp(y.data_ptr(), expected.data_ptr(), static_cast<size_t>(n) * 4) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

fxjit_status borrowed(fxjit_frame* f, const fxjit_value* in, const int64_t*, fxjit_value* out) {
  f->slots[0] = in[0];
  out[0] = f->slots[0];
  return FXJIT_OK;
}

TEST_F(Program, AResultThatIsAnInputGetsAReferenceOfItsOwn) {
  input("x");
  program_.owned_results = {false};
  at::Tensor x = at::ones({2});
  at::Tensor y = run(&borrowed, {x});
  EXPECT_TRUE(y.is_same(x));
  EXPECT_EQ(x.use_count(), 2u);
}

TEST_F(Program, BindingNamesWhatDoesNotFit) {
  fx::Node* x = input("x");
  bool failed = false;
  call("aten::view", {x, "abc"}, 1, &failed);
  EXPECT_TRUE(failed);
  EXPECT_EQ(reason_, "aten::view: argument 'size' cannot be abc");
  call("aten::view", {x}, 1, &failed);
  EXPECT_EQ(reason_, "aten::view: argument 'size' is missing");
}

}  // namespace
}  // namespace fxjit::torch_
