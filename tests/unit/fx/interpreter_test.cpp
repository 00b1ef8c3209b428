#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

TEST(Interpreter, RunsEachOpcode) {
  struct Double : BasicModule {
    Value call(std::span<const Value> args, const Value&) override { return tensor(2 * number(args[0])); }
  };
  const auto root = make_ref<BasicModule>("Root");
  root->register_parameter("w", parameter(3));
  root->register_module("d", Ref<Module>(make_ref<Double>()));
  const GraphPtr g = Graph::create();
  Node* x = g->placeholder("x");
  Node* sum = g->call_function(op("add"), t({x, g->get_attr("w")}));
  Node* neg = g->call_method("neg", t({g->call_module("d", t({sum}))}));
  g->output(Argument::dict({{"r", neg}}));
  Resolver r;
  const auto gm = GraphModule::create(root, g);
  EXPECT_EQ(number(*Interpreter(*gm, &r).run({tensor(1)}).find("r")), -8);
}

TEST(Interpreter, ArgumentsAreBoundAndMisuseIsRejected) {
  const GraphPtr g = Graph::create();
  Node *a = g->placeholder("a"), *b = g->placeholder("b", Argument(10));
  g->output(t({a, b}));
  const auto gm = GraphModule::create(make_ref<BasicModule>("R"), g);
  const auto call = [&](std::vector<Value> args, Value kwargs = {}) {
    return Interpreter(*gm).run(args, kwargs).repr();
  };
  EXPECT_EQ(call({1}), "(1, 10)");
  EXPECT_EQ(call({1, 2}), "(1, 2)");
  EXPECT_EQ(call({}, Value::dict({{"b", 1}, {"a", 2}})), "(2, 1)");
  EXPECT_EQ(error_of([&] { call({}); }),
            "RuntimeError: Expected positional argument for parameter a, but one was not passed in!");
  EXPECT_EQ(error_of([&] { call({1, 2, 3}); }), "TypeError: forward() takes 2 positional arguments but 3 were given");
  EXPECT_EQ(error_of([&] { call({1}, Value::dict({{"c", 1}})); }),
            "TypeError: forward() got an unexpected keyword argument 'c'");
  EXPECT_EQ(error_of([&] { call({1}, Value::dict({{"a", 1}})); }),
            "TypeError: forward() got multiple values for argument 'a'");
}

TEST(Interpreter, ValuesAreFreedAfterTheirLastUse) {
  struct Watch : Interpreter {
    using Interpreter::Interpreter;
    Value call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) override {
      if (target.as_str() == "relu") held = value(*sigmoid) != nullptr;
      return Interpreter::call_method(target, args, kwargs);
    }
    Node* sigmoid = nullptr;
    bool held = false;
  };
  const auto gm = symbolic_trace([](Proxy x) { return x.sigmoid().neg().relu(); });
  Resolver r;
  for (bool free : {true, false}) {
    Watch watch(*gm, &r, free);
    watch.sigmoid = gm->graph().find_nodes(Opcode::CallMethod, "sigmoid")[0];
    watch.run({tensor(1)});
    EXPECT_EQ(watch.held, !free);
  }
}

TEST(Interpreter, KnownValuesAreNotComputedAgain) {
  const auto gm = symbolic_trace([](Proxy x) { return x.neg() + 1; });
  Resolver r;
  Interpreter partial(*gm, &r);
  partial.set_value(*gm->graph().find_nodes(Opcode::Placeholder)[0], nullptr);
  partial.set_value(*gm->graph().find_nodes(Opcode::CallMethod, "neg")[0], tensor(5));
  EXPECT_EQ(number(partial.run({})), 6);
  EXPECT_EQ(r.calls, 0);
}

TEST(Interpreter, ErrorsKeepTheirClassAndNameTheNode) {
  const auto gm = symbolic_trace([](Proxy x) { return x.method("fail"); });
  gm->graph().find_nodes(Opcode::CallMethod, "fail")[0]->meta().set("stack_trace", "line 3");
  Resolver r;
  EXPECT_EQ(
      error_of([&] { Interpreter(*gm, &r).run({tensor(1)}); }),
      "ValueError: this method fails\n\nWhile executing %fail : [num_users=1] = call_method[target=fail](args = (%x,), "
      "kwargs = {})\nOriginal traceback:\nline 3");
  EXPECT_STARTS_WITH(error_of([&] { Interpreter(*symbolic_trace([](Proxy x) { return x.neg(); })).run({tensor(1)}); }),
                     "AttributeError: 'torch.Tensor' object has no attribute 'neg'");
}

TEST(Interpreter, ForeignExceptionsAreNested) {
  const auto f =
      make_function("m.throws", [](std::span<const Value>, const Value&) -> Value { throw std::out_of_range("far"); });
  Graph g;
  g.output(g.call_function(f));
  try {
    Interpreter(nullptr, g).run({});
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_STARTS_WITH(e.what(), "far\n\nWhile executing %throws");
    EXPECT_THROW(std::rethrow_if_nested(e), std::out_of_range);
  }
}

TEST(Interpreter, EachStepCanBeOverridden) {
  struct Swap : Interpreter {
    using Interpreter::Interpreter;
    Value call_method(const Argument& target, std::span<const Value> args, const Value& kwargs) override {
      return Interpreter::call_method(target.as_str() == "neg" ? Argument("relu") : target, args, kwargs);
    }
    Value run_node(const Node& n) override {
      ++nodes;
      return Interpreter::run_node(n);
    }
    int nodes = 0;
  };
  const auto gm = symbolic_trace([](Proxy x) { return x.neg(); });
  Resolver r;
  Swap swap(*gm, &r);
  EXPECT_EQ(number(swap.run({tensor(2)})), 2);
  EXPECT_EQ(swap.nodes, 3);
}

TEST(Interpreter, HostArithmeticIsPythons) {
  const auto eval = [](std::string_view f, std::vector<Value> args) { return op(f)->call(args, {}).repr(); };
  EXPECT_EQ(eval("floordiv", {-7, 2}), "-4");
  EXPECT_EQ(eval("mod", {-7, 2}), "1");
  EXPECT_EQ(eval("mod", {7, -2}), "-1");
  EXPECT_EQ(eval("mod", {-7.5, 2}), "0.5");
  EXPECT_EQ(eval("truediv", {7, 2}), "3.5");
  EXPECT_EQ(eval("pow", {2, 10}), "1024");
  EXPECT_EQ(eval("pow", {2, -1}), "0.5");
  EXPECT_EQ(eval("add", {true, 1}), "2");
  EXPECT_EQ(eval("and_", {true, false}), "False");
  EXPECT_EQ(eval("lt", {1, 2.5}), "True");
  EXPECT_EQ(eval("neg", {3}), "-3");
  EXPECT_EQ(eval("invert", {3}), "-4");
  EXPECT_EQ(eval("abs", {-2.5}), "2.5");
  EXPECT_EQ(eval("getitem", {Value::list({1, 2, 3}), -1}), "3");
  EXPECT_EQ(eval("getitem", {Value::tuple({1, 2, 3}), Value::slice(nullptr, nullptr, -1)}), "(3, 2, 1)");
  EXPECT_EQ(eval("getitem", {Value::dict({{"a", 5}}), "a"}), "5");
  EXPECT_EQ(eval("add", {Value::tuple({1}), Value::tuple({2})}), "(1, 2)");
  EXPECT_STARTS_WITH(error_of([&] { eval("mul", {INT64_MAX, 2}); }), "RuntimeError: integer overflow");
  EXPECT_STARTS_WITH(error_of([&] { eval("floordiv", {1, 0}); }), "RuntimeError: ZeroDivisionError");
  EXPECT_STARTS_WITH(error_of([&] { eval("getitem", {Value::list({}), 0}); }), "IndexError: list index out of range");
  EXPECT_STARTS_WITH(error_of([&] { eval("add", {"a", 1}); }),
                     "TypeError: operator.add: no meaning here for (str, int)");
}

TEST(Interpreter, NodesMayBeAddedWhileItRuns) {
  struct Adding : Interpreter {
    Adding(Graph& g) : Interpreter(nullptr, g, &resolver), graph(g) {}
    Value run_node(const Node& n) override {
      for (int i = 0; n.op() == Opcode::Placeholder && i < 100; ++i) {
        graph.call_function(op("neg"), t({*graph.nodes().begin()}));
      }
      return Interpreter::run_node(n);
    }
    Resolver resolver;
    Graph& graph;
  };
  Graph g;
  Node* x = g.placeholder("x");
  Node* output = g.output(x);
  const InsertScope scope = g.inserting_before(output);
  Adding run(g);
  EXPECT_EQ(run.run({5}).as_int(), 5);
  EXPECT_EQ(g.size(), 102u);
}

}  // namespace
}  // namespace fxjit::fx::test
