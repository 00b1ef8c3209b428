#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <functional>

#include "fxjit/tensor_type.h"
#include "torch/aten_call.h"
#include "torch/import_record.h"

namespace fxjit::torch_ {
namespace {

struct Recorded {
  Recorder recorder;
  std::vector<at::Tensor> outputs;
};

std::unique_ptr<Recorded> record(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& attributes,
                                 const std::function<std::vector<at::Tensor>()>& run) {
  auto r = std::make_unique<Recorded>();
  for (const at::Tensor& t : inputs) r->recorder.add_input(t);
  for (size_t i = 0; i < attributes.size(); ++i) r->recorder.add_attribute(attributes[i], "w." + std::to_string(i));
  RecordingGuard on(r->recorder);
  r->recorder.begin_scope(3);
  r->outputs = run();
  return r;
}

std::string nodes(const TypedProgram& p) {
  std::string out;
  for (fx::Node* n : p.graph->nodes()) {
    out += n->format_node();
    if (n->tensor_type()) out += " : " + to_string(*p.env, *n->tensor_type());
    out += "\n";
  }
  return out;
}

TEST(Import, AnElementwiseProgram) {
  at::Tensor x = at::ones({4, 8}, c10::ScalarType::Half);
  auto r = record({x}, {}, [&] { return std::vector<at::Tensor>{x.to(c10::ScalarType::Float).mul(2).sigmoid()}; });
  auto p = import_record(r->recorder, r->outputs, {.dynamic_sizes = {{1, 0}}});
  ASSERT_TRUE(p.ok()) << p.reason();
  EXPECT_EQ(nodes(*p),
            "%x0 : [num_users=1] = placeholder[target=x0] : f16[s0, 8] (8, 1)\n"
            "%to : [num_users=1] = call_function[target=torch.ops.aten.to.dtype](args = (%x0, torch.float32, False, "
            "False, None), kwargs = {}) : f32[4, 8] (8, 1)\n"
            "%mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Scalar](args = (%to, 2), kwargs = {}) : "
            "f32[4, 8] (8, 1)\n"
            "%sigmoid : [num_users=1] = call_function[target=torch.ops.aten.sigmoid](args = (%mul,), kwargs = {}) : "
            "f32[4, 8] (8, 1)\n"
            "return (sigmoid,)\n");
  EXPECT_EQ(p->outputs[0].kind, ProgramOutput::Fresh);
  EXPECT_EQ(p->inputs.size(), 1u);
  EXPECT_EQ(p->env->symbols().size(), 1u);
  EXPECT_EQ(p->outputs[0].node->meta().find("scope")->as_int(), 3);
  p->graph->lint();
}

TEST(Import, AttributesThatAreReadBecomePlaceholders) {
  at::Tensor x = at::ones({2}), w = at::ones({2}), unused = at::ones({2});
  auto r = record({x}, {unused, w}, [&] { return std::vector<at::Tensor>{x.add(w)}; });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok()) << p.reason();
  ASSERT_EQ(p->attributes.size(), 1u);
  EXPECT_EQ(p->attributes[0].path, "w.1");
  EXPECT_EQ(p->attributes[0].node->name(), "w_1");
  EXPECT_TRUE(p->attributes[0].tensor.is_same(w));
}

TEST(Import, SeveralResultsGoThroughGetitem) {
  at::Tensor x = at::ones({4});
  auto r = record({x}, {}, [&] {
    auto parts = x.split(2);
    auto [value, index] = x.max(0);
    return std::vector<at::Tensor>{parts[1], value, index};
  });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok()) << p.reason();
  EXPECT_EQ(p->outputs[0].kind, ProgramOutput::View);
  EXPECT_EQ(p->outputs[1].kind, ProgramOutput::Fresh);
  EXPECT_EQ(p->outputs[2].node->tensor_type()->dtype, DType::Int64);
  EXPECT_EQ(p->outputs[2].node->arg(1).as_int(), 1);
  EXPECT_EQ(p->outputs[0].node->callable().qualified_name(), "_operator.getitem");
}

TEST(Import, MutationsAndAliases) {
  at::Tensor x = at::ones({4}), y = at::ones({4});
  auto r = record({x, y}, {}, [&] {
    at::Tensor v = x.view({2, 2});
    v.add_(1);
    return std::vector<at::Tensor>{x, y, v, x.mul(2), at::Tensor()};
  });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok()) << p.reason();
  EXPECT_EQ(p->mutated_inputs, std::vector<int32_t>{0});
  EXPECT_FALSE(p->mutates_aliases);
  using O = ProgramOutput;
  EXPECT_EQ(p->outputs[0].kind, O::Input);
  EXPECT_EQ(p->outputs[0].index, 0);
  EXPECT_EQ(p->outputs[1].kind, O::Input);
  EXPECT_EQ(p->outputs[1].index, 1);
  EXPECT_EQ(p->outputs[2].kind, O::View);
  EXPECT_EQ(p->outputs[2].node->callable().qualified_name(), "aten::add_.Scalar");  // uses behind it read its node
  EXPECT_EQ(p->outputs[3].kind, O::Fresh);
  EXPECT_EQ(p->outputs[4].kind, O::None);
  p->graph->eliminate_dead_code();
  EXPECT_NE(nodes(*p).find("add_"), std::string::npos);  // impure
}

TEST(Import, TwoInputsOfOneMemoryOfWhichOneIsWritten) {
  at::Tensor x = at::ones({4});
  at::Tensor y = x.view({2, 2});
  auto r = record({x, y}, {}, [&] { return std::vector<at::Tensor>{y.add_(1)}; });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok());
  EXPECT_TRUE(p->mutates_aliases);
  EXPECT_EQ(p->mutated_inputs, (std::vector<int32_t>{0, 1}));
}

TEST(Import, OneTensorTwice) {
  at::Tensor x = at::ones({4});
  auto r = record({x, x}, {}, [&] { return std::vector<at::Tensor>{x.add(x)}; });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->inputs.size(), 2u);
  EXPECT_EQ(p->input_values[0], p->input_values[1]);
  EXPECT_EQ(p->inputs[1]->users().size(), 0u);
}

TEST(Import, RandomIsSaid) {
  at::Tensor x = at::ones({4});
  auto r = record({x}, {}, [&] { return std::vector<at::Tensor>{x.bernoulli()}; });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_TRUE(p.ok()) << p.reason();
  EXPECT_TRUE(p->random);
}

TEST(Import, WhatCannotBeSaidFailsWithTheCall) {
  at::Tensor x = at::ones({4});
  auto r = record({x}, {}, [&] {
    bool positive = x.sum().item<float>() > 0;
    return std::vector<at::Tensor>{positive ? x.mul(2) : x};
  });
  auto p = import_record(r->recorder, r->outputs);
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.reason(), "aten::item (call 1 of the record, scope 3) reads data of a tensor on the host");

  r = record({x}, {}, [&] { return std::vector<at::Tensor>{x.to_sparse()}; });
  p = import_record(r->recorder, r->outputs);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.reason().find("a tensor whose layout is not strided"), std::string::npos) << p.reason();

  r = record({x}, {}, [&] { return std::vector<at::Tensor>{x.mul(2)}; });
  p = import_record(r->recorder, std::vector<at::Tensor>{at::ones({1})});
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.reason(), "result 0 is a tensor of unknown origin");
}

}  // namespace
}  // namespace fxjit::torch_
