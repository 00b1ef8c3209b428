#include "passes/typed_text.h"

#include <algorithm>

#include "fxjit/errors.h"
#include "fxjit/fx/text.h"
#include "kernel/kernel_call.h"
#include "ops/aten_target.h"
#include "passes/alias.h"
#include "support/format.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;

constexpr const char *kEffect = "effect", *kWrite = "write", *kRandom = "random", *kFunctional = "functional";

bool is_schema(std::string_view name) { return name.find("::") != name.npos; }

// The targets of typed graphs are names of ATen schemas. Of the meta only what passes ask for is kept: whether a call
// writes or draws random numbers, where the name does not say.
class TypedCodec final : public fx::TextCodec {
 public:
  explicit TypedCodec(ShapeEnv& env) : env_(env) {}

  ShapeEnv* shapes() override { return &env_; }

  std::optional<fx::ObjectText> encode(const fx::Object& object) override {
    if (std::optional<fx::ObjectText> text = TextCodec::encode(object)) return text;
    std::string name;
    object.print(name);
    return fx::ObjectText{"object", Argument::tuple({Argument(name)}), {}};
  }

  std::string name_of(const fx::Callable& f) override {
    if (dynamic_cast<const kernel::KernelCall*>(&f)) return "kernel:" + std::string(f.qualified_name());
    return TextCodec::name_of(f);
  }

  fx::CallableRef find(std::string_view name) override {
    if (name.starts_with("kernel:") && !is_schema(name)) {
      throw ValueError(support::concat(name, " was made by the pass fuse: a graph with kernels is not read"));
    }
    if (is_schema(name)) return fx::make_ref<ops::AtenTarget>(std::string(name), is_inplace(name));
    return TextCodec::find(name);
  }

  Argument meta_of(const fx::Node& n) override {
    const bool told = n.op() != fx::Opcode::CallFunction || kernel::kernel_call_of(n) || !is_schema(schema_of(n)) ||
                      is_inplace(schema_of(n)) || !n.is_impure();
    if (told) return {};
    return Argument::dict({{kEffect, Argument(n.is_impure(/*impure_random=*/false) ? kWrite : kRandom)}});
  }

  void set_meta(fx::Node& n, const Argument& meta) override {
    for (const fx::DictEntry& e : meta.entries()) {
      const bool known = e.key == Argument(kEffect) && (e.value == Argument(kWrite) || e.value == Argument(kRandom));
      if (!known || !is_schema(schema_of(n))) {
        throw ValueError(
            "behind an operator of a typed graph may stand {\"effect\": \"write\"} or {\"effect\": \"random\"}");
      }
      const bool writes = e.value == Argument(kWrite) || is_inplace(schema_of(n));
      n.set_target(fx::ObjectRef(fx::make_ref<ops::AtenTarget>(std::string(schema_of(n)), writes, !writes)));
    }
  }

  // What a kernel writes beside its results.
  std::string comment_on(const fx::Node& n) override {
    const kernel::KernelCall* call = kernel::kernel_call_of(n);
    std::string out;
    for (size_t i = 0; call && i < call->buffers.size(); ++i) {
      if (!call->kernel.buffers[i].output || call->buffers[i].operand < 0) continue;
      out += (out.empty() ? "writes " : ", ") + n.arg(call->buffers[i].operand).to_string();
    }
    return out;
  }

 private:
  ShapeEnv& env_;
};

}  // namespace

std::string print_typed(const fx::Graph& graph, const ShapeEnv& env, bool functional) {
  ShapeEnv scratch = env;  // asking for row-major strides makes expressions
  TypedCodec codec(scratch);
  fx::TextDocument document;
  if (functional) document.values.emplace_back(kFunctional, true);
  document.graphs.emplace_back("", fx::GraphPtr(fx::GraphPtr(), const_cast<fx::Graph*>(&graph)));  // borrowed
  return fx::print_text(document, &codec);
}

std::string dump_typed(const PassContext& context) {
  try {
    return print_typed(*context.graph, context.env, context.functional);
  } catch (const Error& e) {
    return support::concat("# ", e.what(), "\n", context.graph->to_string(), "\n");
  }
}

bool is_typed(std::string_view text) {
  for (std::string_view line : support::split(text, '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("typed")) return true;
  }
  return false;
}

TypedText parse_typed(std::string_view text, ShapeEnv& env) {
  TypedCodec codec(env);
  const fx::TextDocument d = fx::parse_text(text, &codec);
  if (d.graphs.size() != 1) throw ValueError(support::concat("fx text: expected one graph, found ", d.graphs.size()));
  TypedText out{d.graphs[0].second, false};
  for (const auto& [name, value] : d.values) {
    if (name != kFunctional || !value.is_bool()) {
      throw ValueError(support::concat("fx text: a typed graph has no value ", name, " but functional, True or False"));
    }
    out.functional = value.as_bool();
  }
  return out;
}

}  // namespace fxjit::inline v0::passes
