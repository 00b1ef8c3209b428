#include "fx_test_util.h"
#include "fxjit/fx/ownership.h"

namespace fxjit::fx::test {
namespace {

using A = Argument;

TEST(Argument, ConvertsFromWhatCppHas) {
  EXPECT_TRUE(A().is_none());
  EXPECT_TRUE(A(nullptr).is_none());
  EXPECT_TRUE(A(true).is_bool());
  EXPECT_EQ(A(3).as_int(), 3);
  EXPECT_EQ(A(size_t{7}).as_int(), 7);
  EXPECT_EQ(A(2.5f).as_float(), 2.5);
  EXPECT_EQ(A("text").as_str(), "text");
  EXPECT_EQ(A("").as_str(), "");
  EXPECT_EQ(A(kHalf).as_dtype(), DType::Float16);
  EXPECT_EQ(A(Device{1, 3}).as_device(), (Device{1, 3}));
  EXPECT_EQ(A(Device{0, -1}).as_device(), (Device{0, -1}));
  EXPECT_EQ(A(std::complex<double>(1, -2)).as_complex(), std::complex<double>(1, -2));
  EXPECT_EQ(A(MemoryFormat::ChannelsLast).as_memory_format(), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(A(ObjectRef()).is_none());
}

TEST(Argument, AskingForAnotherKindIsATypeError) {
  EXPECT_THROW((void)A(1).as_str(), TypeError);
  EXPECT_THROW((void)A("1").as_int(), TypeError);
  EXPECT_THROW((void)A(1).items(), TypeError);
  EXPECT_THROW((void)A::list({1}).entries(), TypeError);
  EXPECT_THROW((void)A::list({1})[1], IndexError);
}

TEST(Argument, EqualityIsStructuralAndStrict) {
  EXPECT_EQ(A::list({1, "a", A::tuple({2.0})}), A::list({1, "a", A::tuple({2.0})}));
  EXPECT_FALSE(A::list({1}) == A::tuple({1}));
  EXPECT_FALSE(A(1) == A(1.0));
  EXPECT_FALSE(A(1) == A(true));
  EXPECT_FALSE(A(0.0) == A(-0.0));
  EXPECT_EQ(A(std::nan("")), A(std::nan("")));
  EXPECT_EQ(A::dict({{"a", 1}}), A::dict({{"a", 1}}));
  EXPECT_EQ(A::list({}), A::list({}));
  EXPECT_FALSE(A::list({}) == A::list({1}));
  EXPECT_EQ(A::list({1, "a"}).hash(), A::list({1, "a"}).hash());
  EXPECT_NE(A::list({1, "a"}).hash(), A::tuple({1, "a"}).hash());
  EXPECT_EQ(A("same").hash(), A(std::string("same")).hash());
}

TEST(Argument, DictsKeepInsertionOrderAndTheLastValue) {
  std::vector<DictEntry> entries;
  for (int i = 0; i < 20; ++i) entries.push_back({i % 10, i});
  const A d = A::dict(entries);
  ASSERT_EQ(d.size(), 10u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(d.entries()[static_cast<size_t>(i)].key, A(i));
    EXPECT_EQ(*d.find(i), A(i + 10));
  }
  EXPECT_EQ(d.find("x"), nullptr);
  EXPECT_EQ(A::dict({{"a", 1}, {"b", 2}, {"a", 3}}).to_string(), "{a: 3, b: 2}");
}

TEST(Argument, PrintsAsTorchFxDoes) {
  Graph g;
  Node* x = g.placeholder("x");
  const A a = A::tuple(
      {x, A::tuple({A::slice(nullptr, x, 2), A::ellipsis(), nullptr, "str", 1e-5, INFINITY, true, kHalf, Device{0, -1},
                    std::complex<double>(1, 2), A::range(0, 3), MemoryFormat::ChannelsLast, Layout::Strided})});
  EXPECT_EQ(a.to_string(),
            "(%x, (slice(None, x, 2), Ellipsis, None, str, 1e-05, inf, True, torch.float16, cpu, (1+2j), range(0, 3), "
            "torch.channels_last, torch.strided))");
  EXPECT_EQ(A::dict({{"k", A::list({"s", A::tuple({x})})}}).to_string(), "{k: [s, (%x,)]}");
  EXPECT_EQ(A::dict({{"a", A::list({x, A::tuple({x})})}, {"s", "st"}}).repr(), "{'a': [x, (x,)], 's': 'st'}");
  EXPECT_EQ(A(Device{1, 0}).repr(), "device(type='cuda', index=0)");
  EXPECT_EQ(A(std::complex<double>(0, 2)).to_string(), "2j");
}

TEST(Argument, MapArgKeepsKindsAndSharesWhatHasNoNodes) {
  Graph g;
  Node *x = g.placeholder("x"), *y = g.placeholder("y");
  const auto type = make_function("Point", nullptr);
  const A constant = A::list({1, 2});
  const A a = A::dict({{"l", A::list({x, 1})},
                       {"t", A::tuple({x})},
                       {"n", A::named_tuple(type, std::vector<A>{x, 2})},
                       {"s", A::slice(x, nullptr)},
                       {"c", constant}});
  const A b = map_arg(a, [&](Node* n) { return n == x ? A(y) : A(n); });
  EXPECT_EQ(b.to_string(), "{l: [%y, 1], t: (%y,), n: (%y, 2), s: slice(y, None, None), c: [1, 2]}");
  EXPECT_EQ(b.find("n")->kind(), ArgumentKind::NamedTuple);
  EXPECT_EQ(b.find("n")->type_object(), type);
  EXPECT_EQ(b.find("c")->items().data(), constant.items().data());
  int leaves = 0;
  map_aggregate(a, [&](const A& leaf) {
    ++leaves;
    return leaf;
  });
  EXPECT_EQ(leaves, 10);
}

TEST(Argument, SharedPartsAreFreed) {
  const ObjectRef t = tensor(1);
  EXPECT_EQ(t->use_count(), 1u);
  {
    const A a = A::list({t, A::tuple({t})});
    const A b = a;
    EXPECT_EQ(t->use_count(), 3u);
    EXPECT_TRUE(b.contains_object());
    EXPECT_FALSE(b.contains_node());
  }
  EXPECT_EQ(t->use_count(), 1u);
}

TEST(Argument, KnowsWhetherItIsTheSoleOwner) {
  A list = A::list({1, A::tuple({2})}), object = tensor(1);
  EXPECT_TRUE(is_sole_owner(list) && is_sole_owner(list[1]) && is_sole_owner(object));
  EXPECT_TRUE(is_sole_owner(A()) && is_sole_owner(A(3)) && is_sole_owner(A::tuple({})));
  {
    A other = list, inner = list[1], second = object;
    EXPECT_FALSE(is_sole_owner(list) || is_sole_owner(list[1]) || is_sole_owner(object));
  }
  EXPECT_TRUE(is_sole_owner(list) && is_sole_owner(list[1]) && is_sole_owner(object));
}

TEST(Argument, TraverseVisitsEachObject) {
  struct Counter : ObjectVisitor {
    void object(const Object&) override { ++count; }
    int count = 0;
  } counter;
  traverse(A::list({tensor(1), A::dict({{"k", tensor(2)}}), 3}), counter);
  EXPECT_EQ(counter.count, 2);
}

TEST(Argument, IsNotNestedTooDeep) {
  Graph g;
  Node* x = g.placeholder("x");
  Argument a = x;
  for (int i = 0; i < 1000; ++i) a = A::list({a});
  EXPECT_EQ(error_of([&] { A::dict({{"k", A::list({a})}}); }), "ValueError: an argument is nested deeper than 1000");
  EXPECT_EQ(a.to_string(), std::string(1000, '[') + "%x" + std::string(1000, ']'));
  Node* n = g.call_method("relu", t({a[0]}));
  EXPECT_EQ(g.copy()->size(), 2u);
  n->replace_input_with(x, 1);
  EXPECT_EQ(n->args(), map_arg(t({a[0]}), [](Node*) { return A(1); }));
}

}  // namespace
}  // namespace fxjit::fx::test
