// The wrapper: order, times, skip, failure, and what is printed.
#include <gtest/gtest.h>

#include "evaluator.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

TEST(RunPasses, EveryRowIsTimedInOrder) {
  Program p;
  Node* x = p.f32({4, 6}, true);
  p.output({p.call("aten::_softmax", {x, -1, false})});
  PassContext c = p.context();
  Result<std::vector<PassTime>> times = run_passes(c);
  ASSERT_TRUE(times.ok());
  std::vector<std::string> names, changed;
  for (const PassTime& t : *times) {
    names.emplace_back(t.name);
    if (t.changed) changed.emplace_back(t.name);
    EXPECT_GE(t.milliseconds, 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"infer_types", "canonicalize", "functionalize", "decompose", "fold", "cse",
                                             "dce", "fuse"}));
  EXPECT_EQ(changed, (std::vector<std::string>{"decompose", "fuse"}));
}

TEST(RunPasses, SkipLeavesPassesOut) {
  Program p;
  p.options.skip = "fuse,cse";
  Node* x = p.f32({4, 6});
  p.output({p.build.add(p.build.exp(x), p.build.exp(x))});
  PassContext c = p.context();
  ASSERT_TRUE(run_passes(c).ok());
  EXPECT_EQ(p.kernels(), 0u);
  EXPECT_EQ(p.count("aten::exp"), 2u);
}

TEST(RunPasses, ASkipMustNameAPassThatCanBeLeftOut) {
  auto refused = [](const char* skip) {
    Options options;
    options.skip = skip;
    try {
      check_skips(options);
    } catch (const ValueError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(""), "");
  EXPECT_EQ(refused("fuse,cse"), "");
  EXPECT_NE(refused("fuse,infer_types").find("infer_types cannot be left out; these can: canonicalize"),
            std::string::npos);
  EXPECT_NE(refused("fuze").find("no pass 'fuze'"), std::string::npos);
}

TEST(RunPasses, EachPassMayBeSkipped) {
  for (const char* skipped : {"canonicalize", "functionalize", "decompose", "fold", "cse", "dce", "fuse"}) {
    Program p;
    p.options.skip = skipped;
    p.options.verify = true;
    Node* x = p.f32({4, 6});
    Node* d = p.call("aten::detach", {p.build.exp(x)});
    p.inplace("aten::mul_.Tensor", {x, 2.0});
    p.build.exp(d);
    p.output({p.call("aten::_softmax", {p.build.add(d, x), -1, false})});
    expect_same_after(p, [](PassContext& c) { EXPECT_TRUE(run_passes(c).ok()); }, 1e-5);
  }
}

TEST(RunPasses, ARefusalNamesThePass) {
  Program p;
  Node* y = p.build.exp(p.f32({4}));
  p.output({p.inplace("aten::normal_", {y})});
  PassContext c = p.context();
  Result<std::vector<PassTime>> r = run_passes(c);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.reason(), "functionalize: aten::normal_ at %normal_: this in-place operator has no pure form");
}

TEST(PrintTyped, ALineANode) {
  Program p;
  Node* x = p.input(DType::Float16, {4, 6}, true);
  Node* w = p.input(DType::Float32, {4, 6}, false, {1, 4});
  Node* y = p.build.mul(x, 2.0);
  p.output({y, w, p.opaque(y)});
  EXPECT_EQ(p.print(),
            "fx 1\n"
            "symbol s0 : size(0, 0) = 4\n"
            "symbol s1 : size(0, 1) = 6\n"
            "typed graph:\n"
            "  %x0 : f16[s0, s1] = placeholder\n"
            "  %x1 : f32[4, 6] (1, 4) = placeholder\n"
            "  %mul : f16[s0, s1] = aten::mul.Tensor(%x0, 2.0)\n"
            "  %opaque_negation : f16[s0, s1] = aten::opaque_negation(%mul)\n"
            "  return (%mul, %x1, %opaque_negation)\n");
  PassContext c = p.context();
  ASSERT_TRUE(run_passes(c).ok());
  EXPECT_EQ(p.print(),
            "fx 1\n"
            "symbol s0 : size(0, 0) = 4\n"
            "symbol s1 : size(0, 1) = 6\n"
            "guard s0 == 4\n"
            "guard s1 == 6\n"
            "typed graph:\n"
            "  %x0 : f16[4, 6] = placeholder\n"
            "  %x1 : f32[4, 6] (1, 4) = placeholder\n"
            "  %fused_mul : f16[4, 6] = kernel:fused_mul(%x0)\n"
            "  %opaque_negation : f16[4, 6] = aten::opaque_negation(%fused_mul)\n"
            "  return (%fused_mul, %x1, %opaque_negation)\n");
}

}  // namespace
}  // namespace fxjit::inline v0::passes
