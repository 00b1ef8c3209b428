// Saved files without Python: written, read, called, and refused when damaged.
#include "fxjit/torch/file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fxjit/errors.h"
#include "fxjit/fx/fx.h"
#include "fxjit/torch/values.h"
#include "torch/method_resolver.h"
#include "torch/tensor_object.h"

namespace fxjit::torch_ {
namespace {

class File : public testing::Test {
 protected:
  File() : path_((std::filesystem::temp_directory_path() / ("fxjit_file_test_" + std::to_string(getpid()))).string()) {}
  ~File() override { std::filesystem::remove(path_); }

  // y = relu(x * a) + b, in a module of its own.
  static fx::GraphModuleRef example() {
    const at::Tensor base = at::arange(6, at::kFloat);
    auto root = fx::make_ref<fx::BasicModule>();
    root->set_attribute("a", fx::make_ref<TensorObject>(base.slice(0, 0, 4, 2), true), fx::AttributeKind::Parameter);
    root->set_attribute("b", fx::make_ref<TensorObject>(base.slice(0, 4, 6)), fx::AttributeKind::Buffer);
    const fx::GraphPtr g = fx::Graph::create();
    fx::Node* x = g->placeholder("x", {}, "f32[2]");
    fx::Node* product =
        g->call_function(fx::builtin_function("_operator.mul"), fx::Argument::tuple({x, g->get_attr("a")}));
    fx::Node* relu = g->call_function(aten("aten::relu"), fx::Argument::tuple({product}));
    fx::Node* sum = g->call_function(aten("add"), fx::Argument::tuple({relu, g->get_attr("b")}));
    g->output(fx::Argument::tuple({sum, fx::Device{}}));
    return fx::GraphModule::create(root, g, "Example");
  }

  static at::Tensor call(const fx::GraphModuleRef& m) {
    return to_tensor(fx::Interpreter(*m, &method_resolver()).run({to_value(at::ones({2}))})[0]);
  }

  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string error() const {
    try {
      load(path_);
    } catch (const ValueError& e) {
      return e.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(File, WhatIsWrittenIsRead) {
  const fx::GraphModuleRef module = example();
  save(module, path_);
  const fx::GraphModuleRef read = load(path_);
  EXPECT_EQ(read->graph().to_string(), module->graph().to_string());
  EXPECT_EQ(read->class_name(), "Example");
  EXPECT_TRUE(call(read).equal(call(module)));
  EXPECT_EQ(read->attribute_kind("a"), fx::AttributeKind::Parameter);
  EXPECT_EQ(read->attribute_kind("b"), fx::AttributeKind::Buffer);
  // They shared memory, with strides and offsets of their own.
  const at::Tensor a = to_tensor(read->attribute("a")), b = to_tensor(read->attribute("b"));
  EXPECT_EQ(a.storage().data(), b.storage().data());
  EXPECT_EQ(a.stride(0), 2);
  EXPECT_EQ(b.storage_offset(), 4);
  save(read, path_);  // and once more
  EXPECT_TRUE(call(load(path_)).equal(call(module)));
}

TEST_F(File, FunctionsOfTheUserArePassed) {
  const auto twice = fx::make_function("mine.twice", [](std::span<const fx::Value> args, const fx::Value&) {
    return to_value(to_tensor(args[0]).mul(2));
  });
  const fx::GraphPtr g = fx::Graph::create();
  g->output(g->call_function(twice, fx::Argument::tuple({g->placeholder("x")})));
  save(fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), g), path_);
  const auto run = [&](const FileGlobals& globals) {
    return fx::Interpreter(*load(path_, globals), &method_resolver()).run({to_value(at::ones({2}))});
  };
  EXPECT_EQ(to_tensor(run({{"mine:twice", twice}})).sum().item<double>(), 4);
  EXPECT_THROW(run({}), NameError);
}

TEST_F(File, DamagedFilesAreRefused) {
  save(example(), path_);
  const std::string good = bytes();
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); at += 13) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    write(damaged);
    refused += error() != "no error";
  }
  EXPECT_GT(refused, good.size() / 13 / 4);
  for (size_t size = 0; size < good.size(); size += 61) {
    write(good.substr(0, size));
    EXPECT_NE(error(), "no error") << size;
  }
  EXPECT_EQ(error().rfind(path_ + " is no file of fxjit, or damaged: ", 0), 0u) << error();
  std::filesystem::remove(path_);
  EXPECT_EQ(error(), "there is no file " + path_);
}

}  // namespace
}  // namespace fxjit::torch_
