// Launches against what the emission floor says of them, and with kernels and frames that are real.
#include <gtest/gtest.h>

#include "codegen/schedule.h"
#include "jit/kernel_cache.h"
#include "kernel/kernel.h"
#include "runtime/frame.h"
#include "specialised_host.h"
#include "typed_graphs.h"

namespace fxjit {
namespace {

using fx::Node;
using kernel::StrideClass;
using test::FakeTensor;
using test::SpecialisedHost;
using test::TensorPtr;
using test::TypedGraph;

struct Launch {
  int64_t begin = -1, end = -1, blocks = -1, grain = -1;
  std::vector<int64_t> extents, strides;
};
Launch seen;
size_t axes_seen, buffers_seen;

void record(int64_t begin, int64_t end, void* ctx) {
  const auto& l = *static_cast<fxjit_launch*>(ctx);
  seen.begin = seen.begin < 0 ? begin : std::min(seen.begin, begin);
  seen.end = std::max(seen.end, end);
  seen.blocks = l.blocks;
  seen.extents.assign(l.extents, l.extents + axes_seen);
  seen.strides.assign(l.strides, l.strides + axes_seen * buffers_seen);
}

// A copy over all dimensions of a tensor of rank `rank`, one axis a dimension, the last one a reduction or not.
struct Copy {
  TypedGraph g;
  Node* launch;
  kernel::Kernel k;

  Copy(size_t rank, bool reduction, bool symbolic, const std::vector<int64_t>& sizes) {
    std::vector<Dim> dims;
    for (size_t i = 0; i < rank; ++i) {
      dims.push_back(symbolic ? g.size(0, static_cast<int32_t>(i), 1000 + static_cast<int64_t>(i))
                              : g.env->constant(sizes[i]));
    }
    auto t = g.type(DType::Float32, dims);
    Node* x = g.input("x", t);
    auto call = fx::make_ref<kernel::KernelCall>("copy");
    call->kernel.axes.resize(rank);
    if (reduction) call->kernel.axes.back().reduction = true;
    call->extents = dims;
    const std::vector<StrideClass> any(rank, StrideClass::Any);
    call->kernel.buffers = {{DType::Float32, false, any}, {DType::Float32, true, any}};
    call->buffers = {{0, -1, {}, t->strides}, {-1, 0, {}, t->strides}};
    call->results = {t};
    k = call->kernel;
    launch = g.launch(call, {x});
    g.graph->output(launch);
  }
};

TEST(Launch, UnitsBlocksExtentsAndStridesAreThoseOfTheKernel) {
  for (const bool symbolic : {true, false}) {
    for (const bool reduction : {false, true}) {
      for (const std::vector<int64_t>& sizes :
           {std::vector<int64_t>{}, {2}, {4096}, {4097}, {50000}, {3, 5}, {70, 9000}, {7, 3, 4095}, {2, 2, 2, 9000}}) {
        if (sizes.empty() && reduction) continue;
        Copy c(sizes.size(), reduction, symbolic, sizes);
        SpecialisedHost host(c.g.graph, c.g.env, c.g.inputs);
        host.kernels[c.launch] = {record, nullptr};
        auto x = std::make_unique<FakeTensor>(DType::Float32, sizes);
        seen = {};
        axes_seen = sizes.size();
        buffers_seen = 2;
        ASSERT_EQ(host.run({x.get()}), FXJIT_OK);
        const codegen::Schedule schedule;  // the one that TypedGraph::launch chose
        EXPECT_EQ(seen.begin, 0);
        EXPECT_EQ(seen.end, codegen::unit_count(c.k, schedule, sizes.data()));
        if (!reduction) {
          EXPECT_EQ(seen.blocks, codegen::blocks_per_outer(c.k, schedule, sizes.data()));
        }
        EXPECT_EQ(seen.extents, sizes);
        std::vector<int64_t> strides(x->geometry.begin() + static_cast<int64_t>(sizes.size()), x->geometry.end());
        strides.insert(strides.end(), strides.begin(), strides.begin() + static_cast<int64_t>(sizes.size()));
        EXPECT_EQ(seen.strides, strides);
      }
    }
  }
  EXPECT_EQ(FakeTensor::live, 0);
}

TEST(Launch, NothingRunsWithoutElements) {
  Copy c(2, false, false, {0, 5});
  SpecialisedHost host(c.g.graph, c.g.env, c.g.inputs);
  host.kernels[c.launch] = {record, nullptr};
  auto x = std::make_unique<FakeTensor>(DType::Float32, std::vector<int64_t>{0, 5});
  seen = {};
  EXPECT_EQ(host.run({x.get()}), FXJIT_OK);
  EXPECT_EQ(seen.end, -1);
  EXPECT_EQ(host.outputs.size(), 1u);
}

// A row kernel may have no memory for scratch, in any of its calls; the next launch starts afresh.
TEST(Launch, AKernelWithoutMemoryFailsTheCall) {
  Copy c(2, true, true, {});
  SpecialisedHost host(c.g.graph, c.g.env, c.g.inputs);
  static bool fails;
  host.kernels[c.launch] = {[](int64_t, int64_t, void* ctx) {
                              if (fails) static_cast<fxjit_launch*>(ctx)->status = FXJIT_NO_MEMORY;
                            },
                            nullptr};
  auto x = std::make_unique<FakeTensor>(DType::Float32, std::vector<int64_t>{3, 5});
  for (const bool f : {true, false, true}) {
    fails = f;
    EXPECT_EQ(host.run({x.get()}), f ? FXJIT_NO_MEMORY : FXJIT_OK);
    host.outputs.clear();
  }
}

// Work that is worth it goes through the frame's parallel_for, in grains; less runs inline.
TEST(Launch, LargeLaunchesAskForThreads) {
  Copy c(2, false, true, {});
  SpecialisedHost host(c.g.graph, c.g.env, c.g.inputs);
  host.kernels[c.launch] = {record, nullptr};
  static int64_t grain;
  host.set_threads(4, [](int64_t begin, int64_t end, int64_t g, fxjit_kernel fn, void* ctx) {
    grain = g;
    fn(begin, end, ctx);
  });
  auto run = [&](int64_t rows, int64_t columns) {
    auto x = std::make_unique<FakeTensor>(DType::Float32, std::vector<int64_t>{rows, columns});
    grain = -1;
    axes_seen = 2;
    EXPECT_EQ(host.run({x.get()}), FXJIT_OK);
    host.outputs.clear();
    return grain;
  };
  EXPECT_EQ(run(10, 10), -1);
  const int64_t wide = run(1000, 4096), narrow = run(100000, 8);
  EXPECT_GE(wide, 1);
  EXPECT_LT(wide, 1000) << "4 million elements are work for several threads";
  EXPECT_GT(narrow, 100 * wide) << "units of 8 elements come in larger grains";
}

// Two kernels of the emission floor around a value in the arena, in a frame of the runtime whose arena must grow.
TEST(Launch, RealKernelsInARealFrame) {
  if (!jit::host_target()) GTEST_SKIP() << jit::host_target().reason();
  TypedGraph g;
  const Dim n = g.size(0, 0, 16);
  auto t = g.type(DType::Float32, {n});
  Node* x = g.input("x", t);
  auto make = [&](const char* name) {
    auto call = g.kernel(name, 1, {t}, n);
    kernel::Expr load, square;
    load.kind = kernel::ExprKind::Load;
    load.index = 0;
    square.kind = kernel::ExprKind::Op;
    square.op = ops::OpId::square;
    square.args[0] = 0;
    call->kernel.exprs = {load, square};
    call->kernel.stores = {{1, 1}};
    return call;
  };
  auto first = make("first"), second = make("second");
  codegen::KernelChoice choice;
  choice.schedule = codegen::choose_schedule(first->kernel);
  Node* a = g.launch(first, {x}, choice);
  Node* b = g.launch(second, {a}, choice);
  g.graph->output(b);
  const auto handle = *jit::get_kernel(first->kernel, choice.schedule, Options());
  const auto again = *jit::get_kernel(second->kernel, choice.schedule, Options());
  EXPECT_EQ(handle.function, again.function) << "names are no part of a kernel";
  SpecialisedHost host(g.graph, g.env, g.inputs);
  host.kernels = {{a, {handle.function, nullptr}}, {b, {again.function, nullptr}}};
  fxjit_frame* frame = fxjit_frame_acquire(host.plan().slots, host.plan().symbols);
  for (const int64_t size : {3, 1000, 3000000}) {
    auto in = std::make_unique<FakeTensor>(DType::Float32, std::vector<int64_t>{size});
    for (int64_t i = 0; i < size; ++i) in->data<float>()[i] = static_cast<float>(i % 17) - 8;
    ASSERT_EQ(host.run_in(*frame, {in.get()}), FXJIT_OK);
    for (int64_t i = 0; i < size; ++i) {
      const auto v = static_cast<float>(i % 17) - 8;
      ASSERT_EQ(host.outputs[0]->data<float>()[i], v * v * v * v) << i;
    }
    EXPECT_GE(frame->arena_bytes, static_cast<size_t>(size) * 4);
    host.outputs.clear();
  }
  fxjit_frame_release(frame);
}

}  // namespace
}  // namespace fxjit
