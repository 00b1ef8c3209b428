#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

struct ProxyTest : testing::Test {
  Graph g;
  GraphAppendingTracer tracer{g};
  Proxy x{g.placeholder("x"), tracer};
  std::string last() { return g.root()->prev()->format_node().substr(g.root()->prev()->name().size() + 20); }
  std::string recorded(const Proxy& p) {
    return std::string(p.node()->name()) + " " + p.node()->args().to_string() + " " +
           (p.node()->op() == Opcode::CallFunction ? p.node()->callable().pretty_name()
                                                   : std::string(p.node()->target_str()));
  }
};

TEST_F(ProxyTest, OperatorsRecordPythonsFunctionsInOrder) {
  EXPECT_EQ(recorded(x + 1), "add (%x, 1) operator.add");
  EXPECT_EQ(recorded(1 - x), "sub (1, %x) operator.sub");
  EXPECT_EQ(recorded(x * x), "mul (%x, %x) operator.mul");
  EXPECT_EQ(recorded(2.5 / x), "truediv (2.5, %x) operator.truediv");
  EXPECT_EQ(recorded(x % 2), "mod (%x, 2) operator.mod");
  EXPECT_EQ(recorded(x.floordiv(2)), "floordiv (%x, 2) operator.floordiv");
  EXPECT_EQ(recorded(x.power(2)), "pow_1 (%x, 2) operator.pow");
  EXPECT_EQ(recorded(x.at(x)), "matmul (%x, %x) operator.matmul");
  EXPECT_EQ(recorded(x << 1), "lshift (%x, 1) operator.lshift");
  EXPECT_EQ(recorded(x & x), "and_ (%x, %x) operator.and_");
  EXPECT_EQ(recorded(x == x), "eq (%x, %x) operator.eq");
  EXPECT_EQ(recorded(1 < x), "lt (1, %x) operator.lt");
  EXPECT_EQ(recorded(x >= 1), "ge (%x, 1) operator.ge");
  EXPECT_EQ(recorded(x != 0), "ne (%x, 0) operator.ne");
  EXPECT_EQ(recorded(-x), "neg (%x,) operator.neg");
  EXPECT_EQ(recorded(~x), "invert (%x,) operator.invert");
}

TEST_F(ProxyTest, MethodsRecordTheirNameWithSelfFirst) {
  EXPECT_EQ(recorded(x.to(kFloat)), "to (%x, torch.float32) to");
  EXPECT_EQ(recorded(x.sigmoid()), "sigmoid (%x,) sigmoid");
  EXPECT_EQ(recorded(x.method("float")), "float_1 (%x,) float");
  EXPECT_EQ(recorded(x.sum(Argument::list({0, 1}), true)), "sum_1 (%x, [0, 1], True) sum");
  const Proxy p = x.method_kw("sum", {0}, Argument::dict({{"keepdim", true}}));
  EXPECT_EQ(p.node()->kwargs().to_string(), "{keepdim: True}");
  EXPECT_EQ(recorded(x(1)), "call (%x, 1) __call__");
}

TEST_F(ProxyTest, IndexingAndAttributes) {
  EXPECT_EQ(recorded(x[0]), "getitem (%x, 0) operator.getitem");
  EXPECT_EQ(recorded(x.index({Argument::ellipsis(), nullptr, Argument::slice(nullptr, x.size(0))})),
            "getitem_1 (%x, (Ellipsis, None, slice(None, size, None))) operator.getitem");
  EXPECT_EQ(recorded(x.attr("shape")), "getattr_1 (%x, shape) builtins.getattr");
  const auto [a, b] = x.unpack<2>();
  EXPECT_EQ(recorded(b), "getitem_3 (%x, 1) operator.getitem");
}

TEST_F(ProxyTest, AugmentedAssignmentRecordsAPureOperationAndRebinds) {
  Proxy y = x;
  y += 1;
  EXPECT_EQ(recorded(y), "add (%x, 1) operator.add");
  EXPECT_EQ(x.node()->name(), "x");
}

TEST_F(ProxyTest, ControlFlowIsATraceErrorThatNamesTheValue) {
  const std::string text =
      "TraceError: symbolically traced variables cannot be used as inputs to control flow (value 'gt')";
  EXPECT_EQ(error_of([&] {
              if (x > 0) x.neg();
            }),
            text);
  EXPECT_STARTS_WITH(error_of([&] { (void)!x; }), "TraceError: symbolically traced");
  EXPECT_STARTS_WITH(error_of([&] { (void)(x && true); }), "TraceError: symbolically traced");
  EXPECT_STARTS_WITH(
      error_of([&] {
        for (const Proxy& p : x) (void)p;
      }),
      "TraceError: Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop");
  x.node()->meta().set("source_line", "model.cpp:3");
  EXPECT_NE(error_of([&] { (void)!x; }).find("(value 'x' of model.cpp:3)"), std::string::npos);
}

TEST_F(ProxyTest, ControlFlowHooksCanBeOverridden) {
  struct Unroll : GraphAppendingTracer {
    using GraphAppendingTracer::GraphAppendingTracer;
    bool to_bool(const Proxy&) override { return true; }
    std::vector<Proxy> iter(const Proxy& p) override { return p.unpack(3); }
  } unroll(g);
  const Proxy y(x.node(), unroll);
  EXPECT_TRUE(y ? true : false);
  int n = 0;
  for (const Proxy& p : y) n += p.node()->op() == Opcode::CallFunction;
  EXPECT_EQ(n, 3);
}

TEST_F(ProxyTest, AProxyWithoutTracerAppendsToItsGraph) {
  const Proxy y(x.node());
  EXPECT_EQ(recorded(y + x), "add (%x, %x) operator.add");
  Graph other;
  EXPECT_EQ(recorded(Proxy(other.placeholder("z")).neg()), "neg (%z,) neg");
}

TEST(SymbolicTrace, FunctionsOfSeveralParametersAndResults) {
  const auto gm =
      symbolic_trace([](auto a, auto b, auto c) { return std::make_pair(a + b, std::vector<Proxy>{c, a}); });
  EXPECT_EQ(names(gm->graph()), (Names{"x", "y", "z", "add", "output"}));
  EXPECT_EQ(gm->graph().output_node()->format_node(), "return (add, [z, x])");
  const auto named = symbolic_trace([](Proxy a) { return a; }, {"input"});
  EXPECT_EQ(named->graph().to_string(),
            "graph():\n    %input_1 : [num_users=1] = placeholder[target=input]\n    return input_1");
  EXPECT_THROW(symbolic_trace([](Proxy a) { return a; }, {"a", "b"}), ValueError);
}

TEST(Tracer, MustMakeANode) {
  struct Vetoing : Tracer {
    Node* create_node(Opcode op, const Target& target, Argument args, Argument kwargs,
                      std::optional<std::string_view> name, Argument type) override {
      if (op == Opcode::CallMethod) return nullptr;
      return Tracer::create_node(op, target, std::move(args), std::move(kwargs), name, std::move(type));
    }
  } tracer;
  EXPECT_EQ(error_of([&] { tracer.trace(trace_function([](Proxy x) { return x.relu(); })); }),
            "TypeError: create_node made no node for a call_method of relu");
}

}  // namespace
}  // namespace fxjit::fx::test
