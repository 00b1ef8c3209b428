// Random typed graphs through all passes: the results, the written inputs and what shares memory stay as they were.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <random>

#include "evaluator.h"
#include "kernel/kernel_call.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

constexpr int kGraphs = 400;

class Generator {
 public:
  Generator(Program& p, uint64_t seed) : p_(p), random_(seed) {}

  void run() {
    dynamic_ = pick(2);
    for (int i = 0; i < 3; ++i) values_.push_back(p_.input(type(), shape(), dynamic_));
    inputs_ = values_;
    const int steps = 4 + pick(24);
    for (int i = 0; i < steps; ++i) step();
    std::vector<Argument> results;
    for (int i = 0; i < 3; ++i) results.emplace_back(any());
    results.emplace_back(values_.back());
    p_.output(results);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  Node* any() { return values_[values_.size() - 1 - pick(std::min<int>(8, static_cast<int>(values_.size())))]; }
  DType type() {
    constexpr DType kTypes[] = {DType::Float32, DType::Float32, DType::Float16, DType::BFloat16, DType::Int32};
    return kTypes[pick(5)];
  }
  std::vector<int64_t> shape() {
    switch (pick(4)) {
      case 0:
        return {5, 7};
      case 1:
        return {5, 1};
      case 2:
        return {7};
      default:
        return {5, 7};
    }
  }

  bool floating(const Node* n) { return is_floating(n->tensor_type()->dtype); }
  size_t rank(const Node* n) { return n->tensor_type()->rank(); }

  // Operators that a rule refuses on these operands are left out.
  void call(std::string_view schema, std::vector<Argument> args) {
    Result<Node*> n = p_.build.try_call(schema, std::move(args));
    if (n) values_.push_back(*n);
  }

  void step() {
    Node *x = any(), *y = any();
    switch (pick(18)) {
      case 0:
        return call("aten::add.Tensor", {x, y, 1});
      case 1:
        return call("aten::mul.Tensor", {x, y});
      case 2:
        return call("aten::sub.Tensor", {x, 1.5, 1});
      case 3:
        return call("aten::maximum", {x, y});
      case 4:
        if (Result<Node*> condition = p_.build.try_call("aten::gt.Tensor", {x, y}))
          call("aten::where.self", {*condition, x, y});
        return;
      case 5:
        return call("aten::sigmoid", {x});
      case 6:
        return call("aten::relu", {x});
      case 7:
        return call("aten::to.dtype", {x, type(), false, false, Argument()});
      case 8:
        return reduction(x);
      case 9:
        return view(x);
      case 10:
        if (floating(x) && rank(x) > 0) call("aten::_softmax", {x, -1, false});
        return;
      case 11:
        return in_place(x, y);
      case 12:
        values_.push_back(pick(2) ? p_.flip(x) : p_.opaque(x));
        return;
      case 13:
        if (floating(x)) values_.push_back(p_.impure("aten::rand_like", {x}, x->tensor_type()));
        return;
      case 14:
        return call("aten::clone", {x, Argument()});
      default:
        return call("aten::mul.Tensor", {x, 0.5});
    }
  }

  void reduction(Node* x) {
    if (rank(x) == 0) return;
    constexpr const char* kNames[] = {"aten::amax", "aten::sum.dim_IntList", "aten::mean.dim"};
    const char* name = kNames[pick(3)];
    if (name == kNames[2] && !floating(x)) name = kNames[0];
    std::vector<Argument> args{x, Argument::list({pick(3) ? -1 : 0}), pick(2) == 0};
    if (name != kNames[0]) args.emplace_back();
    call(name, args);
  }

  void view(Node* x) {
    switch (pick(6)) {
      case 0:
        return call("aten::t", {x});
      case 1:
        return call("aten::unsqueeze", {x, -1});
      case 2:
        return call("aten::reshape", {x, Argument::list({-1})});
      case 3:
        if (rank(x) == 2) call("aten::select.int", {x, 0, -1});
        return;
      case 4:
        if (rank(x) == 2) call("aten::slice.Tensor", {x, 0, 0, 5, 1});
        return;
      default:
        return call("aten::detach", {x});
    }
  }

  void in_place(Node* x, Node* y) {
    if (pick(4) != 0) x = inputs_[pick(static_cast<int>(inputs_.size()))];
    // Eager refuses what does not fit into x: a number always does where x is floating.
    if (!floating(x)) return;
    bool fits = y->tensor_type()->sizes == x->tensor_type()->sizes;
    switch (pick(3)) {
      case 0:
        values_.push_back(p_.inplace("aten::mul_.Tensor", {x, 0.75}));
        return;
      case 1:
        if (fits) values_.push_back(p_.inplace("aten::add_.Tensor", {x, y, 1}));
        return;
      default:
        if (fits) values_.push_back(p_.inplace("aten::copy_", {x, y, false}));
        return;
    }
  }

  Program& p_;
  std::mt19937_64 random_;
  std::vector<Node*> values_, inputs_;
  bool dynamic_ = false;
};

// Roundings of a softmax are here, never in the evaluator's; a half type amplifies them.
double tolerance_of(const Program& p) { return p.count("aten::_softmax") ? 2e-2 : 1e-5; }

std::vector<kernel::KernelCall*> kernels_of(const Program& p) {
  std::vector<kernel::KernelCall*> calls;
  for (Node* n : p.graph->nodes()) {
    if (n->op() != fx::Opcode::CallFunction) continue;
    if (auto* k = dynamic_cast<kernel::KernelCall*>(&n->callable())) calls.push_back(k);
  }
  return calls;
}

TEST(PassFuzz, ResultsStay) {
  int compiled = 0, kernels = 0, written = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program p;
    p.options.verify = true;
    Generator(p, static_cast<uint64_t>(seed)).run();
    SCOPED_TRACE(p.print());
    const double tolerance = tolerance_of(p);
    const Execution before = run_program(p, 1);
    PassContext c = p.context();
    Result<std::vector<PassTime>> times = Failure{""};
    ASSERT_NO_THROW(times = run_passes(c)) << p.print();
    if (!times) {  // it runs in another way
      EXPECT_TRUE(times.reason().starts_with("functionalize: ")) << times.reason();
      continue;
    }
    ++compiled;
    for (const kernel::KernelCall* k : kernels_of(p)) {
      ++kernels;
      written += k->writes_operand();
    }
    ASSERT_EQ(difference(p, before, run_program(p, 1), tolerance), "") << p.print();
  }
  EXPECT_GT(compiled, kGraphs / 2);
  EXPECT_GT(kernels, 2 * compiled);
  EXPECT_GT(written, 5);
}

// Names by number: which one a new node gets depends on all that were ever taken.
std::string numbered(const std::string& text) {
  std::map<std::string, size_t> numbers;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] != '%') continue;
    const size_t begin = i + 1;
    while (i + 1 < text.size() && (std::isalnum(static_cast<unsigned char>(text[i + 1])) || text[i + 1] == '_')) ++i;
    out += std::to_string(numbers.emplace(text.substr(begin, i + 1 - begin), numbers.size()).first->second);
  }
  return out;
}

// What passes need is in the text: a graph that was read behaves as the one that was printed, pass by pass.
TEST(PassFuzz, ATextIsTheGraph) {
  int done = 0;
  for (int seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program p;
    Generator(p, static_cast<uint64_t>(seed)).run();
    PassContext c = p.context();
    bool refused = false;
    for (const Pass& pass : all_passes()) {
      const std::string before = print_typed(*c.graph, p.env, c.functional);
      ShapeEnv env;
      TypedText read = parse_typed(before, env);
      ASSERT_EQ(print_typed(*read.graph, env, read.functional), before);
      PassContext again{read.graph, env, p.options, {}, read.functional};
      const Result<bool> x = pass.run(c), y = pass.run(again);
      ASSERT_EQ(x.ok(), y.ok()) << before;
      if (!x.ok()) {
        ASSERT_EQ(x.reason(), y.reason()) << before;
        refused = true;
        break;
      }
      ASSERT_EQ(numbered(print_typed(*c.graph, p.env, c.functional)),
                numbered(print_typed(*again.graph, env, again.functional)))
          << pass.name << " of\n"
          << before;
    }
    done += !refused;
  }
  EXPECT_GT(done, kGraphs / 2);
}

// Whatever the damage, the answer is a graph that prints, or a ValueError with a place.
TEST(PassFuzz, DamagedTypedTexts) {
  size_t refused = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Program p;
    Generator(p, seed).run();
    const std::string good = print_typed(*p.graph, p.env);
    std::mt19937_64 random(seed);
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::string text = good;
      for (size_t n = 1 + random() % 3; n > 0; --n) {
        const size_t at = random() % text.size();
        const char c = "\"\\()[]{}%@!=:,.0s-\n #+*/<"[random() % 26];
        if (random() % 2) {
          text[at] = c;
        } else {
          text.erase(at, 1 + random() % 4);
        }
      }
      try {
        ShapeEnv env;
        const TypedText read = parse_typed(text, env);
        print_typed(*read.graph, env, read.functional);
        ++accepted;
      } catch (const ValueError& e) {
        ASSERT_EQ(std::string(e.what()).rfind("fx text", 0), 0u) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 100u);
}

// A wrong operator in one kernel is noticed, but where what follows hides it (a comparison, a maximum).
TEST(PassFuzz, APlantedFaultIsFound) {
  int planted = 0, found = 0;
  for (int seed = 0; seed < 200; ++seed) {
    Program p;
    Generator(p, static_cast<uint64_t>(seed)).run();
    const double tolerance = tolerance_of(p);
    const Execution before = run_program(p, 1);
    PassContext c = p.context();
    if (!run_passes(c)) continue;
    bool changed = false;
    for (kernel::KernelCall* k : kernels_of(p))
      for (kernel::Expr& e : k->kernel.exprs) {
        if (changed || e.kind != kernel::ExprKind::Op || e.op != ops::OpId::add) continue;
        e.op = ops::OpId::sub;
        changed = true;
      }
    if (!changed) continue;
    ++planted;
    found += !difference(p, before, run_program(p, 1), tolerance).empty();
  }
  EXPECT_GT(planted, 30);
  EXPECT_GT(found, planted * 3 / 4) << planted << " planted";
}

}  // namespace
}  // namespace fxjit::inline v0::passes
