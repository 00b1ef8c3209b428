#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "evaluator.h"
#include "memory.h"
#include "support/format.h"

namespace fxjit::inline v0::passes {
namespace {

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return std::signbit(a) == std::signbit(b) || tolerance > 0;
  return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), 1e-3});
}

std::string difference(const Program& p, const Tensor& a, const Tensor& b, double tolerance) {
  // In numbers: a pass may write one size in another way.
  if (a.type->dtype != b.type->dtype) return "element types differ";
  if (hints(p.env, a.type->sizes) != hints(p.env, b.type->sizes)) return "sizes differ";
  if (hints(p.env, a.type->strides) != hints(p.env, b.type->strides)) return "strides differ";
  std::vector<double> x = elements(p, a), y = elements(p, b);
  for (size_t i = 0; i < x.size(); ++i)
    if (!close(x[i], y[i], tolerance)) return support::concat("element ", i, ": ", x[i], " before, ", y[i], " after");
  return "";
}

}  // namespace

std::vector<double> elements(const Program& p, const Tensor& t) { return read(p.env, t); }

Inputs random_inputs(const Program& p, uint64_t seed) {
  std::mt19937_64 random(seed);
  Inputs inputs;
  for (const fx::Node* n : p.graph->nodes()) {
    if (n->op() != fx::Opcode::Placeholder) continue;
    Tensor t = allocate(p.env, n->tensor_type());
    std::uniform_real_distribution<double> values(-3, 3);
    size_t count = read(p.env, t).size();
    std::vector<double> v;
    for (size_t i = 0; i < count; ++i) v.push_back(t.type->dtype == DType::Bool ? random() % 2 : values(random));
    write(p.env, t, v);
    inputs.push_back(t);
  }
  return inputs;
}

std::string difference(const Program& p, const Execution& before, const Execution& after, double tolerance) {
  const std::vector<Tensor>&x = before.outcome.results, &y = after.outcome.results;
  if (x.size() != y.size()) return "another number of results";
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::string d = difference(p, x[i], y[i], tolerance); !d.empty()) return support::concat("result ", i, ": ", d);
    // Which of them share memory, and with which input.
    for (size_t k = 0; k < i; ++k)
      if ((x[i].memory == x[k].memory) != (y[i].memory == y[k].memory))
        return support::concat("memory of results ", k, " and ", i);
    for (size_t k = 0; k < before.inputs.size(); ++k)
      if ((x[i].memory == before.inputs[k].memory) != (y[i].memory == after.inputs[k].memory))
        return support::concat("memory of result ", i, " and input ", k);
  }
  for (size_t i = 0; i < before.inputs.size(); ++i)
    if (std::string d = difference(p, before.inputs[i], after.inputs[i], tolerance); !d.empty())
      return support::concat("input ", i, ": ", d);
  return "";
}

Execution run_program(Program& p, uint64_t seed) {
  Execution run{random_inputs(p, seed), {}};
  run.outcome = evaluate(p, run.inputs);
  return run;
}

void expect_same_after(Program& p, const std::function<void(PassContext&)>& pass, double tolerance) {
  SCOPED_TRACE(p.print());
  Execution before = run_program(p, 1);
  PassContext context = p.context();
  verify(context);
  pass(context);
  SCOPED_TRACE(p.print());
  ASSERT_NO_THROW(verify(context));
  EXPECT_EQ(difference(p, before, run_program(p, 1), tolerance), "");
}

}  // namespace fxjit::inline v0::passes
