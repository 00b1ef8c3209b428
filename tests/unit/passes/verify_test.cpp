// Each rule of the verifier, broken once.
#include <gtest/gtest.h>

#include <functional>

#include "kernel/kernel_call.h"
#include "passes/fuse.h"
#include "program.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;
using kernel::KernelCall;

// Two kernels, one with two results, and a write of an input.
struct Sample {
  Program p;
  Node* x;
  Node* first = nullptr;   // of two results
  Node* second = nullptr;  // of one
  Node* copy;

  Sample() {
    x = p.f32({4, 3}, true);
    Node* a = p.build.exp(x);
    Node* b = p.build.add(a, 1.0);
    Node* c = p.build.mul(p.opaque(a), b);
    copy = p.graph->call_function(aten_target("aten::copy_", true), Argument::tuple({x, p.opaque(c), false}));
    copy->set_tensor_type(x->tensor_type());
    p.output({b, c});
    PassContext context = p.context();
    context.functional = true;
    EXPECT_TRUE(fuse(context).ok());
    for (Node* n : p.graph->nodes()) {
      if (n->op() != fx::Opcode::CallFunction || !dynamic_cast<KernelCall*>(&n->callable())) continue;
      (first ? second : first) = n;
    }
  }

  KernelCall& call(Node* n) { return dynamic_cast<KernelCall&>(n->callable()); }
  Node* part(int64_t i) {
    for (Node* user : first->users())
      if (user->arg(1).as_int() == i) return user;
    return nullptr;
  }
  TensorTypePtr other_type() {
    auto t = std::make_shared<TensorType>(*x->tensor_type());
    t->dtype = DType::Float16;
    return t;
  }
};

std::string broken(const std::function<void(Sample&)>& change) {
  Sample s;
  if (!s.first || !s.second || s.call(s.first).results.size() != 2) return "the sample is not what it was";
  PassContext c = s.p.context();
  c.functional = true;
  verify(c);
  change(s);
  try {
    verify(c);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

#define EXPECT_BROKEN(text, ...)                                        \
  do {                                                                  \
    std::string what = broken([&](Sample& s) { __VA_ARGS__; });         \
    EXPECT_NE(what.find(text), std::string::npos) << "found: " << what; \
  } while (false)

TEST(VerifyTyped, Types) { EXPECT_BROKEN("which has no type", s.copy->arg(1).as_node()->set_tensor_type(nullptr)); }

TEST(VerifyTyped, TypesOfKernelResults) {
  EXPECT_BROKEN("its result's type", s.second->set_tensor_type(s.other_type()));
  EXPECT_BROKEN("its result's type", s.part(1)->set_tensor_type(s.other_type()));
  EXPECT_BROKEN("takes a result", s.part(1)->update_arg(1, 7));
  EXPECT_BROKEN("element type", s.call(s.second).results[0] = s.other_type();
                s.second->set_tensor_type(s.other_type()));
}

TEST(VerifyTyped, SizesOfAnotherEnvironment) {
  EXPECT_BROKEN("of this ShapeEnv", auto t = std::make_shared<TensorType>(*s.x->tensor_type());
                t->sizes[0].id = 1 << 20; s.x->set_tensor_type(t));
  EXPECT_BROKEN("as many strides", auto t = std::make_shared<TensorType>(*s.x->tensor_type()); t->strides.pop_back();
                s.x->set_tensor_type(t));
}

TEST(VerifyTyped, Bindings) {
  EXPECT_BROKEN("one binding per buffer", s.call(s.second).buffers.pop_back());
  EXPECT_BROKEN("one extent per axis", s.call(s.second).extents.pop_back());
  EXPECT_BROKEN("bound to an operand", for (auto& b : s.call(s.second).buffers) if (b.operand >= 0) b.operand = 9);
  EXPECT_BROKEN("operand or a result", s.call(s.second).buffers[0].result = 0; s.call(s.second).buffers[0].operand = 0);
}

TEST(VerifyTyped, TheKernelItself) {
  EXPECT_BROKEN("", s.call(s.second).kernel.exprs.back().args[0] = 99);
  EXPECT_NE(broken([](Sample& s) { s.call(s.second).kernel.exprs.back().args[0] = 99; }), "");
}

TEST(VerifyTyped, Tuples) { EXPECT_BROKEN("reads the tuple", s.copy->update_arg(1, s.first)); }

TEST(VerifyTyped, Order) {
  EXPECT_NE(broken([](Sample& s) { s.x->next()->prepend(s.copy->prev()); }), "");
}

TEST(VerifyTyped, ReadsAfterAWrite) {
  EXPECT_BROKEN("written before", s.x->append(s.copy); s.copy->update_arg(1, s.x));
}

TEST(VerifyTyped, OpcodesAndTheOutput) {
  EXPECT_BROKEN("calls functions only", auto scope = s.p.graph->inserting_before(s.copy);
                s.p.graph->call_method("relu", Argument::tuple({s.x})));
  EXPECT_BROKEN("has an output", s.p.graph->erase_node(s.p.graph->output_node()));
}

}  // namespace
}  // namespace fxjit::inline v0::passes
