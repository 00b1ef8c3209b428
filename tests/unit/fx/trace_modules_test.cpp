// Seed checklist S1 (symbolic tracing of modules) as far as it has a meaning in C++; see reference rows S1.1 to S1.24.
#include "fx_test_util.h"

namespace fxjit::fx::test {
namespace {

class Linear final : public BasicModule {
 public:
  explicit Linear(double w) : BasicModule("torch.nn.modules.linear.Linear") {
    weight = register_parameter("weight", parameter(w));
  }
  Value call(std::span<const Value> args, const Value&) override {
    return tensor(number(args[0]) * number(Value(attribute("weight"))));
  }
  Argument forward(Tracer& t, std::span<const Argument> args, const Argument&) override {
    return t.proxy(args[0].as_node()) * t.attribute(weight);
  }
  std::optional<Signature> signature() const override { return named_signature({"input"}); }
  ObjectRef weight;
};

// A module of the user: its forward is a function.
class Custom final : public BasicModule {
 public:
  using Forward = std::function<Argument(Custom&, Tracer&, std::vector<Proxy>)>;
  Custom(Signature signature, Forward forward)
      : BasicModule("__main__.Custom"), signature_(std::move(signature)), forward_(std::move(forward)) {}
  std::optional<Signature> signature() const override { return signature_; }
  Argument forward(Tracer& t, std::span<const Argument> args, const Argument&) override {
    std::vector<Proxy> proxies;
    for (const Argument& a : args) proxies.push_back(t.proxy(a.as_node()));
    return forward_(*this, t, std::move(proxies));
  }

 private:
  Signature signature_;
  Forward forward_;
};

Ref<Custom> custom(std::vector<std::string> parameters, Custom::Forward forward) {
  return make_ref<Custom>(named_signature(std::move(parameters)), std::move(forward));
}

ModuleRef child(Module& m, std::string_view name) { return find_module(m, name); }

struct NoLeaf : Tracer {
  bool is_leaf_module(const Module&, std::string_view) override { return false; }
};

TEST(TraceModules, S1_01_TraceGivesAGraphAndSymbolicTraceACallable) {
  const auto m = custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + 1); });
  Tracer tracer;
  const GraphPtr graph = tracer.trace(ModuleRef(m));
  EXPECT_EQ(names(*graph), (Names{"x", "add", "output"}));
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(run(*gm, {tensor(2)}), 3);
  EXPECT_EQ(run(*GraphModule::create(tracer.root(), graph), {tensor(2)}), 3);
}

TEST(TraceModules, S1_02_ARootWithoutATraceableForwardIsATypedError) {
  EXPECT_STARTS_WITH(error_of([] { Tracer().trace(ModuleRef(make_ref<BasicModule>("M"))); }),
                     "TypeError: cannot trace M");
}

TEST(TraceModules, S1_03_TheModuleItselfIsRealWhileTracing) {
  for (bool flag : {true, false}) {
    const auto m = custom({"x"}, [flag](Custom&, Tracer&, std::vector<Proxy> p) {
      return flag ? Argument(p[0].relu()) : Argument(p[0].neg());
    });
    EXPECT_EQ(names(symbolic_trace(ModuleRef(m))->graph())[1], flag ? "relu" : "neg");
  }
}

TEST(TraceModules, S1_04_OnePlaceholderPerParameterInOrderWithDefaults) {
  const Signature signature{
      {"a"}, {"b", ParameterKind::Positional, Argument(4)}, {"c", ParameterKind::KeywordOnly, Argument(5)}};
  const auto m =
      make_ref<Custom>(signature, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + p[1] * p[2]); });
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(names(gm->graph().find_nodes(Opcode::Placeholder)), (Names{"a", "b", "c"}));
  EXPECT_EQ(run(*gm, {tensor(1)}), 21);
  EXPECT_EQ(run(*gm, {tensor(1), tensor(2)}, Value::dict({{"c", tensor(3)}})), 7);
}

TEST(TraceModules, S1_05_StarredParametersAreSinglePlaceholders) {
  const Signature signature{{"args", ParameterKind::VarPositional}, {"kwargs", ParameterKind::VarKeyword}};
  const auto m = make_ref<Custom>(
      signature, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0][0] + p[1]["foo"]); });
  const auto gm = symbolic_trace(ModuleRef(m));
  const auto inputs = gm->graph().find_nodes(Opcode::Placeholder);
  ASSERT_EQ(inputs.size(), 2u);
  EXPECT_EQ(inputs[0]->target_str(), "*args");
  EXPECT_EQ(inputs[1]->target_str(), "**kwargs");
  EXPECT_EQ(run(*gm, {tensor(1), tensor(9)}, Value::dict({{"foo", tensor(2)}})), 3);
}

TEST(TraceModules, S1_07_ATracerIsUsableAfterAnError) {
  Tracer tracer;
  const auto bad =
      custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return p[0] ? Argument(1) : Argument(2); });
  EXPECT_STARTS_WITH(error_of([&] { tracer.trace(ModuleRef(bad)); }), "TraceError: symbolically traced variables");
  const auto good = custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0].neg()); });
  EXPECT_EQ(names(*tracer.trace(ModuleRef(good))), (Names{"x", "neg", "output"}));
  EXPECT_TRUE(tracer.module_stack().empty());
}

TEST(TraceModules, S1_08_ASharedModuleUsesItsFirstName) {
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(child(self, "second"), {t.call(child(self, "first"), {p[0]})}));
  });
  const auto shared = make_ref<Linear>(2);
  m->register_module("first", shared);
  m->register_module("second", shared);
  const auto gm = symbolic_trace(ModuleRef(m));
  for (Node* n : gm->graph().find_nodes(Opcode::CallModule)) EXPECT_EQ(n->target_str(), "first");
  EXPECT_EQ(run(*gm, {tensor(3)}), 12);
}

TEST(TraceModules, S1_09_AnUnknownModuleIsNamedWithItsClass) {
  const auto m = custom({"x"}, [](Custom&, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(ModuleRef(make_ref<Linear>(1)), {p[0]}));
  });
  EXPECT_EQ(error_of([&] { symbolic_trace(ModuleRef(m)); }),
            "NameError: module is not installed as a submodule: torch.nn.modules.linear.Linear");
}

TEST(TraceModules, S1_10_LeavesAreStandardModulesButSequential) {
  struct Log : Tracer {
    bool is_leaf_module(const Module& m, std::string_view name) override {
      paths.emplace_back(name);
      return Tracer::is_leaf_module(m, name);
    }
    Names paths;
  } tracer;
  const auto baz = make_ref<Linear>(2);
  const auto call_child = [](const char* name) {
    return
        [name](Custom& self, Tracer& t, std::vector<Proxy> p) { return Argument(t.call(child(self, name), {p[0]})); };
  };
  const auto bar = custom({"x"}, call_child("baz")), foo = custom({"x"}, call_child("bar")),
             root = custom({"x"}, call_child("foo"));
  bar->register_module("baz", baz);
  foo->register_module("bar", bar);
  root->register_module("foo", foo);
  const GraphPtr g = tracer.trace(ModuleRef(root));
  EXPECT_EQ(tracer.paths, (Names{"foo", "foo.bar", "foo.bar.baz"}));
  EXPECT_EQ(names(*g), (Names{"x", "foo_bar_baz", "output"}));
  EXPECT_TRUE(baz->is_standard());
  EXPECT_FALSE(make_ref<BasicModule>("torch.nn.modules.container.Sequential")->is_standard());
  EXPECT_FALSE(bar->is_standard());
}

TEST(TraceModules, S1_11_ALeafIsOneCallWhoseParametersAreReadWhenItRuns) {
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(child(self, "lin"), {p[0]}));
  });
  const auto lin = m->register_module("lin", make_ref<Linear>(2));
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(names(gm->graph()), (Names{"x", "lin", "output"}));
  EXPECT_EQ(run(*gm, {tensor(3)}), 6);
  lin->register_parameter("weight", parameter(5));
  EXPECT_EQ(run(*gm, {tensor(3)}), 15);
}

TEST(TraceModules, S1_12_OtherModulesAreTracedThrough) {
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(child(self, "lin"), {p[0]}));
  });
  m->register_module("lin", make_ref<Linear>(2));
  NoLeaf tracer;
  const GraphPtr g = tracer.trace(ModuleRef(m));
  EXPECT_TRUE(g->find_nodes(Opcode::CallModule).empty());
  EXPECT_EQ(names(*g), (Names{"x", "lin_weight", "mul", "output"}));
  const Argument* stack = g->find_nodes(Opcode::CallFunction, op("mul"))[0]->meta().find("nn_module_stack");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->to_string(), "{lin: (lin, torch.nn.modules.linear.Linear)}");
}

TEST(TraceModules, S1_13_AParameterArgumentIsReadFromTheModule) {
  const auto m =
      custom({"x"}, [](Custom& self, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + self.attribute("w")); });
  m->register_parameter("w", parameter(2));
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(names(gm->graph()), (Names{"x", "w", "add", "output"}));
  EXPECT_EQ(run(*gm, {tensor(1)}), 3);
  gm->set_attribute("w", parameter(10), AttributeKind::Parameter);
  EXPECT_EQ(run(*gm, {tensor(1)}), 11);
}

TEST(TraceModules, S1_14_AForeignParameterIsAnError) {
  const auto m = custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + parameter(1)); });
  EXPECT_STARTS_WITH(error_of([&] { symbolic_trace(ModuleRef(m)); }),
                     "NameError: parameter is not a member of this module");
}

TEST(TraceModules, S1_15_ATensorAttributeIsFoundAnyDepthDown) {
  const auto m = custom({"x"}, [](Custom& self, Tracer&, std::vector<Proxy> p) {
    return Argument(p[0] + find_attribute(self, "ta.tensor"));
  });
  const auto ta = m->register_module("ta", make_ref<BasicModule>("TA"));
  ta->set_attribute("tensor", tensor(4), AttributeKind::Plain);
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(gm->graph().find_nodes(Opcode::GetAttr)[0]->target_str(), "ta.tensor");
  EXPECT_EQ(run(*gm, {tensor(1)}), 5);
}

TEST(TraceModules, S1_16_OtherTensorsAreStoredOnTheRootOnceEach) {
  const ObjectRef a = tensor(1), b = tensor(1);
  const auto m = custom({"x"}, [&](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + a + b + a); });
  const auto gm = symbolic_trace(ModuleRef(m));
  Names targets;
  for (Node* n : gm->graph().find_nodes(Opcode::GetAttr)) targets.emplace_back(n->target_str());
  EXPECT_EQ(targets, (Names{"_tensor_constant0", "_tensor_constant1", "_tensor_constant0"}));
  EXPECT_EQ(m->attribute("_tensor_constant0"), a);
  EXPECT_EQ(run(*gm, {tensor(1)}), 4);
}

TEST(TraceModules, S1_17_ABufferArgumentIsReadFromTheModule) {
  const auto m =
      custom({"x"}, [](Custom& self, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + self.attribute("buf")); });
  m->register_buffer("buf", tensor(7));
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(names(gm->graph()), (Names{"x", "buf", "add", "output"}));
  EXPECT_FALSE(m->attribute("_tensor_constant0"));
}

TEST(TraceModules, S1_18_S1_19_AMethodOfAParameterIsRecordedAndTheParameterReadOnce) {
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    const ObjectRef w = self.attribute("w");
    const Proxy first = t.attribute(w).t(), second = t.attribute(w).t();
    return Argument(p[0] + first + second);
  });
  m->register_parameter("w", parameter(2));
  const auto gm = symbolic_trace(ModuleRef(m));
  EXPECT_EQ(names(gm->graph()), (Names{"x", "w", "t", "t_1", "add", "add_1", "output"}));
}

TEST(TraceModules, S1_20_ValuesAreLoweredByTheirKind) {
  Tracer tracer;
  const auto point = make_function("Point", nullptr);
  const auto m = custom({"x"}, [&](Custom& self, Tracer& t, std::vector<Proxy> p) {
    const Argument x = p[0];
    const Argument kept[] = {nullptr,
                             true,
                             1,
                             2.5,
                             "s",
                             kFloat,
                             Argument::ellipsis(),
                             Argument::slice(x, nullptr),
                             Argument::list({x, Argument::tuple({x})}),
                             Argument::dict({{"k", x}, {1, 2}})};
    for (const Argument& a : kept) EXPECT_EQ(t.create_arg(a), a);
    const Argument made = t.create_arg(Argument::named_tuple(point, std::vector<Argument>{x, 1}));
    EXPECT_EQ(made.as_node()->target(), Argument(point));
    EXPECT_EQ(made.as_node()->args().to_string(), "(%x, 1)");
    EXPECT_EQ(t.create_arg(ModuleRef(find_module(self, "sub"))).as_node()->op(), Opcode::GetAttr);
    EXPECT_EQ(error_of([&] { t.create_arg(Argument::dict({{x, 1}})); }),
              "RuntimeError: Keys for dictionaries used as an argument cannot contain a Node. Got key: x");
    struct Thing : Object {
      std::string type_name() const override { return "Thing"; }
    };
    EXPECT_EQ(error_of([&] { t.create_arg(Argument::list({make_ref<Thing>()})); }),
              "NotImplementedError: argument of type: Thing");
    return x;
  });
  m->register_module("sub", make_ref<BasicModule>("Sub"));
  tracer.trace(ModuleRef(m));
}

TEST(TraceModules, S1_21_AnyStructureMayBeReturned) {
  const auto returned = [](auto make) {
    const auto m = custom({"x"}, [make](Custom&, Tracer&, std::vector<Proxy> p) -> Argument { return make(p[0]); });
    const auto gm = symbolic_trace(ModuleRef(m));
    EXPECT_EQ(gm->graph().find_nodes(Opcode::Output).size(), 1u);
    Resolver r;
    return Interpreter(*gm, &r).run({Value(7)}).repr();
  };
  EXPECT_EQ(returned([](Proxy x) { return Argument(x); }), "7");
  EXPECT_EQ(returned([](Proxy x) { return Argument::tuple({x, Argument::list({x, nullptr})}); }), "(7, [7, None])");
  EXPECT_EQ(returned([](Proxy x) { return Argument::dict({{"a", x + 1}}); }), "{'a': 8}");
  EXPECT_EQ(returned([](Proxy) { return Argument(); }), "None");
  EXPECT_EQ(returned([](Proxy) { return Argument(3); }), "3");
}

TEST(TraceModules, S1_22_ATracerKeepsRootAndGraphAndStartsAfresh) {
  const auto m = custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0] + 1); });
  Tracer tracer;
  const GraphPtr first = tracer.trace(ModuleRef(m)), second = tracer.trace(ModuleRef(m));
  EXPECT_NE(first, second);
  EXPECT_EQ(tracer.graph_ptr(), second);
  EXPECT_EQ(tracer.root(), m);
  EXPECT_EQ(first->to_string(), second->to_string());
}

TEST(TraceModules, S1_23_EveryStepCanBeOverridden) {
  struct Custom2 : Tracer {
    using Tracer::trace;
    GraphPtr trace(const ModuleRef& root) override {
      ++traces;
      return Tracer::trace(root);
    }
    Argument create_arg(const Argument& a) override {
      return a.is_int() ? Argument(a.as_int() * 10) : Tracer::create_arg(a);
    }
    Node* create_node(Opcode o, const Target& target, Argument args, Argument kwargs,
                      std::optional<std::string_view> name, Argument type) override {
      Node* n = Tracer::create_node(o, target, std::move(args), std::move(kwargs), name, std::move(type));
      n->meta().set("tag", "seen");
      return n;
    }
    bool is_leaf_module(const Module&, std::string_view) override { return true; }
    int traces = 0;
  } tracer;
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(child(self, "sub"), {p[0] + 1}));
  });
  m->register_module("sub", custom({"x"}, nullptr));
  const GraphPtr g = tracer.trace(ModuleRef(m));
  EXPECT_EQ(tracer.traces, 1);
  EXPECT_EQ(names(*g), (Names{"x", "add", "sub", "output"}));
  EXPECT_EQ(g->find_nodes(Opcode::CallFunction, op("add"))[0]->args().to_string(), "(%x, 10)");
  for (Node* n : g->nodes()) EXPECT_EQ(*n->meta().find("tag"), Argument("seen"));
}

TEST(TraceModules, S1_24_ManyConstantsTraceInLinearWork) {
  const auto work = [](size_t n) {
    std::vector<ObjectRef> constants;
    for (size_t i = 0; i < n; ++i) constants.push_back(tensor(1));
    const auto m = custom({"x"}, [&](Custom&, Tracer&, std::vector<Proxy> p) {
      Proxy sum = p[0];
      for (const ObjectRef& c : constants) sum += c;
      return Argument(sum);
    });
    const auto gm = symbolic_trace(ModuleRef(m));
    EXPECT_EQ(gm->attributes().size(), n);
    return gm->graph().work().total();
  };
  EXPECT_LE(work(10000), 2.1 * static_cast<double>(work(5000)));
}

TEST(TraceModules, RepeatedCallsAreToldApartInTheModuleStack) {
  const auto m = custom({"x"}, [](Custom& self, Tracer& t, std::vector<Proxy> p) {
    return Argument(t.call(child(self, "a"), {t.call(child(self, "a"), {p[0]})}));
  });
  m->register_module("a", custom({"x"}, [](Custom&, Tracer&, std::vector<Proxy> p) { return Argument(p[0].neg()); }));
  Tracer tracer;
  const GraphPtr g = tracer.trace(ModuleRef(m));
  const auto negs = g->find_nodes(Opcode::CallMethod, "neg");
  EXPECT_EQ(negs[0]->meta().find("nn_module_stack")->to_string(), "{a: (a, __main__.Custom)}");
  EXPECT_EQ(negs[1]->meta().find("nn_module_stack")->to_string(), "{a@1: (a, __main__.Custom)}");
}

}  // namespace
}  // namespace fxjit::fx::test
