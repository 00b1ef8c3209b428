// fxjit-run: a graph in text form or in a saved file is compiled, run on sample inputs, and compared with the reference
// interpreter. `--help` has the options and exit codes.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <charconv>
#include <chrono>
#include <iostream>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fxjit/compile.h"
#include "fxjit/errors.h"
#include "fxjit/fx/interpreter.h"
#include "fxjit/fx/text.h"
#include "fxjit/torch/file.h"
#include "support/format.h"
#include "tools/arguments.h"
#include "torch/dtype.h"
#include "torch/method_resolver.h"
#include "torch/saved_module.h"

namespace {

using namespace fxjit;
using fx::Value;

constexpr const char* kHelp = R"(usage: fxjit-run [options] FILE

Compiles a graph, runs it on sample inputs, compares each result with the reference interpreter, and prints results,
errors and times. FILE is a graph in text form (docs/text-format.md) or a file of fxjit.fx.save; - is standard input.

  --input=VALUE     an argument, in order: a tensor as f32[4, 8], or a value of the text format. Without it a
                    placeholder's annotation says what it is: %x : f32[4, 8] = placeholder
  --seed=N          of the numbers in tensors (0)
  --calls=N         compiled calls that are compared (5)
  --tolerance=X     largest error that counts as equal; by default 32 units of the result's largest value
  --explain         print how calls run: kernels, ATen calls, fallbacks
  --save=FILE       write the GraphModule to a file for fxjit.fx.load
  --help            this text

exit status: 0 equal   1 a result differs   2 usage   3 the file or an input is bad   4 the program fails when it runs
)";

enum Exit : int { kEqual = 0, kDiffers = 1, kUsage = 2, kBadInput = 3, kFails = 4 };

struct Failure {
  Exit status;
  std::string message;
};

struct Settings {
  std::string file, save;
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  int calls = 5;
  std::optional<double> tolerance;
  bool explain = false;
};

template <class T>
T number(std::string_view option, std::string_view text) {
  T v{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error == std::errc() && end == text.data() + text.size()) return v;
  throw Failure{kUsage, support::concat(option, " takes a number, not '", text, "'")};
}

Settings parse_options(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const tools::CommandArgument argument(argv[i]);
    const std::string_view option = argument.option, value = argument.value;
    if (!argument.file.empty()) {
      if (!s.file.empty()) throw Failure{kUsage, "more than one file"};
      s.file = argument.file;
    } else if (option == "--input") {
      s.inputs.emplace_back(value);
    } else if (option == "--seed") {
      s.seed = number<uint64_t>(option, value);
    } else if (option == "--calls") {
      s.calls = number<int>(option, value);
    } else if (option == "--tolerance") {
      s.tolerance = number<double>(option, value);
    } else if (option == "--explain") {
      s.explain = true;
    } else if (option == "--save") {
      s.save = value;
    } else {
      throw Failure{kUsage, support::concat("unknown option ", option)};
    }
  }
  if (s.file.empty()) throw Failure{kUsage, "no file"};
  return s;
}

fx::GraphModuleRef read_module(const std::string& path) {
  const std::string text = tools::read_file(path);
  if (text.starts_with("PK")) return fxjit::load(path);
  torch_::FileCodec codec;
  const fx::GraphPtr graph = fx::parse_graph(text, &codec);
  graph->lint();
  return fx::GraphModule::create(fx::make_ref<fx::BasicModule>(), graph);
}

// "f32[4, 8]" as a tensor of random numbers; empty for anything else.
std::optional<Value> sample_tensor(std::string_view text, std::mt19937_64& random) {
  const size_t bracket = text.find('[');
  if (bracket == text.npos || !text.ends_with("]")) return std::nullopt;
  std::optional<DType> dtype;
#define FXJIT_DTYPE(name, value, short_text, bytes, kind) \
  if (text.substr(0, bracket) == short_text) dtype = DType::name;
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  if (!dtype) return std::nullopt;
  std::vector<int64_t> sizes;
  for (std::string_view size : support::split(text.substr(bracket + 1, text.size() - bracket - 2), ',')) {
    while (size.starts_with(' ')) size.remove_prefix(1);
    int64_t n = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), n);
    if (error != std::errc() || end != size.data() + size.size() || n < 0) {
      throw ValueError(support::concat("the size '", size, "' in ", text,
                                       " is no number: pass --input=", text.substr(0, bracket), "[…]"));
    }
    sizes.push_back(n);
  }
  at::Tensor t = at::empty(sizes, at::kDouble);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> few(0, is_floating(*dtype) || *dtype != DType::Bool ? 9 : 1);
  const bool whole = is_integral(*dtype) || *dtype == DType::Bool;
  double* data = t.data_ptr<double>();
  for (int64_t i = 0; i < t.numel(); ++i) data[i] = whole ? few(random) : normal(random);
  return to_value(t.to(torch_::to_scalar_type(*dtype)));
}

std::vector<Value> make_inputs(const fx::Graph& graph, const Settings& s) {
  std::mt19937_64 random(s.seed);
  std::vector<Value> out;
  const auto make = [&](std::string_view text) {
    const std::optional<Value> tensor = sample_tensor(text, random);
    return tensor ? *tensor : fx::parse_value(text);
  };
  for (const fx::Node* n : graph.find_nodes(fx::Opcode::Placeholder)) {
    const size_t i = out.size();
    if (i < s.inputs.size()) {
      out.push_back(make(s.inputs[i]));
    } else if (n->args().size()) {
      break;  // it has a default, and so have those that follow
    } else if (n->type().is_str()) {
      out.push_back(make(n->type().as_str()));
    } else {
      throw ValueError(
          support::concat("what is %", n->name(), "? Pass --input=f32[4, 8], or annotate the placeholder"));
    }
  }
  if (s.inputs.size() > out.size()) throw ValueError("more inputs than placeholders");
  return out;
}

void flatten(const Value& v, std::vector<Value>& out) {
  if (v.is(fx::ArgumentKind::Dict)) {
    for (const fx::DictEntry& e : v.entries()) flatten(e.value, out);
  } else if (v.is_aggregate()) {
    for (const Value& item : v.items()) flatten(item, out);
  } else {
    out.push_back(v);
  }
}

struct Difference {
  double error = 0;
  bool equal = true;
};

double unit_of(const at::Tensor& t) {
  if (t.scalar_type() == at::kHalf) return 0x1p-10;
  if (t.scalar_type() == at::kBFloat16) return 0x1p-7;
  return t.scalar_type() == at::kDouble ? 0x1p-52 : 0x1p-23;
}

Difference compare(const Value& reference, const Value& result, const Settings& s) {
  if (!reference.is_object() || !result.is_object()) return {0, reference == result};
  const at::Tensor a = to_tensor(reference), b = to_tensor(result);
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return {0, false};
  if (a.numel() == 0 || a.equal(b)) return {};
  if (a.is_complex() || !a.is_floating_point()) return {std::numeric_limits<double>::infinity(), false};
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor same = x.eq(y).logical_or(x.isnan().logical_and(y.isnan()));
  const double error = x.sub(y).abs().masked_fill(same, 0.0).max().item<double>();
  const double largest = x.abs().nan_to_num(0.0, 0.0, 0.0).max().item<double>();
  return {error, error <= s.tolerance.value_or(32 * unit_of(a) * largest)};
}

std::string describe(const Value& v) {
  if (!v.is_object()) return v.repr();
  const at::Tensor t = to_tensor(v);
  const std::optional<DType> type = torch_::to_dtype(t.scalar_type());
  std::string out = type ? to_text(*type) : c10::toString(t.scalar_type());
  out += "[";
  for (int64_t i = 0; i < t.dim(); ++i) out += (i ? ", " : "") + std::to_string(t.size(i));
  return out + "]";
}

template <class F>
double milliseconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

Exit run(const fx::GraphModuleRef& module, const std::vector<Value>& inputs, const Settings& s) {
  const at::NoGradGuard no_grad;
  Value reference;
  const double reference_ms = milliseconds([&] {
    fx::Interpreter interpreter(*module, &torch_::method_resolver());
    reference = interpreter.run(inputs);
  });
  std::vector<Value> expected;
  flatten(reference, expected);
  std::vector<Difference> worst(expected.size());
  const CompiledFunction compiled = compile(module);
  double first_ms = 0, best_ms = 0;
  for (int call = 0; call < s.calls; ++call) {
    Value result;
    const double ms = milliseconds([&] { result = compiled.call_values(inputs); });
    if (call == 0) first_ms = ms;
    best_ms = call == 0 ? ms : std::min(best_ms, ms);
    std::vector<Value> got;
    flatten(result, got);
    if (got.size() != expected.size()) throw RuntimeError("the compiled program has another number of results");
    for (size_t i = 0; i < got.size(); ++i) {
      const Difference d = compare(expected[i], got[i], s);
      worst[i] = {std::max(worst[i].error, d.error), worst[i].equal && d.equal};
    }
  }
  bool equal = true;
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < expected.size(); ++i) {
    equal = equal && worst[i].equal;
    rows.push_back({std::to_string(i), describe(expected[i]), support::python_float(worst[i].error),
                    worst[i].equal ? "equal" : "differs"});
  }
  const std::string headers[] = {"result", "value", "largest error", "verdict"};
  std::cout << support::table(headers, rows) << "\nreference " << reference_ms << " ms, first call " << first_ms
            << " ms, best call " << best_ms << " ms\n";
  if (s.explain) std::cout << to_string(compiled.explain());
  return equal ? kEqual : kDiffers;
}

Exit guarded_main(int argc, char** argv) {
  const Settings s = parse_options(argc, argv);
  fx::GraphModuleRef module;
  std::vector<Value> inputs;
  try {
    module = read_module(s.file);
    inputs = make_inputs(module->graph(), s);
    if (!s.save.empty()) fxjit::save(module, s.save);
  } catch (const std::exception& e) {
    throw Failure{kBadInput, e.what()};
  }
  return run(module, inputs, s);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::cout << kHelp;
      return kEqual;
    }
  }
  try {
    return guarded_main(argc, argv);
  } catch (const Failure& f) {
    std::cerr << "fxjit-run: " << f.message << "\n" << (f.status == kUsage ? "fxjit-run --help has the options\n" : "");
    return f.status;
  } catch (const std::exception& e) {
    std::cerr << "fxjit-run: the program fails: " << e.what() << "\n";
    return kFails;
  }
}
