// fxjit-opt: passes by name over a text. `--help` has them.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "fxjit/fx/text.h"
#include "fxjit/fx/transform.h"
#include "jit/kernel_cache.h"
#include "jit/ptx_compiler.h"
#include "kernel/kernel_call.h"
#include "kernel/simplify.h"
#include "passes/pass.h"
#include "passes/typed_text.h"
#include "support/format.h"
#include "tools/arguments.h"

namespace {

using namespace fxjit;

constexpr const char* kUsage = R"(usage: fxjit-opt [--passes=NAME,...] [--emit=STAGE] [--target=TARGET] FILE

Reads a text, runs passes over it in the order given, checks it after each, and prints a stage. FILE may be - for
standard input. Its headings say what it holds: a graph, a typed graph (both docs/text-format.md; a typed graph is
what FXJIT_DUMP=graph prints), or a kernel (tests/golden/kernel has examples). Functions need not exist here.

)";

constexpr const char* kStatus = R"(
The stages of a whole program: FXJIT_DUMP=graph,kernel,llvm,asm,ptx fxjit-run FILE.

exit status: 0 done   1 the text is wrong, or a pass or stage refuses it   2 usage: an unknown option, pass, stage or target
)";

struct UsageError {
  std::string message;
};

struct Settings {
  std::vector<std::string> passes;
  std::string emit, target = "avx512", file;
};

// What a text holds, and the kernels in it. Exactly one of graph and kernel is there.
struct Unit {
  fx::GraphPtr graph;
  bool typed = false;
  bool functional = false;
  ShapeEnv env;
  std::vector<std::pair<std::string, kernel::Kernel>> kernels;  // of a text that is a kernel: it, without a name

  std::string_view kind() const { return !graph ? "kernel" : typed ? "typed graph" : "graph"; }
};

struct Row {
  std::string_view kind;  // of what it takes
  std::string_view name, what;
  void (*run)(Unit&);
};

constexpr Row kPasses[] = {
    {"graph", "dce", "nodes that nobody uses go", [](Unit& u) { u.graph->eliminate_dead_code(); }},
    {"graph", "cse", "equal pure calls become one", [](Unit& u) { fx::eliminate_common_subexpressions(*u.graph); }},
    {"kernel", "simplify", "constants are folded, equal expressions become one, unused ones go",
     [](Unit& u) { kernel::simplify(u.kernels[0].second); }},
};

constexpr std::pair<std::string_view, std::string_view> kStages[] = {
    {"graph", "a graph in text form; the default where one was read"},
    {"fx", "a graph as torch.fx prints it"},
    {"table", "a graph's opcodes, names, targets and arguments in columns"},
    {"kernels", "a kernel, or those that the pass fuse made; the default where one was read"},
    {"llvm", "the LLVM IR of each kernel"},
    {"asm", "the assembly of each kernel; PTX for a GPU"},
};

constexpr std::pair<std::string_view, int> kTargets[] = {{"avx512", 0}, {"avx2", 0}, {"sm_80", 80}, {"sm_90", 90}};

std::string pass_names(std::string_view kind) {
  std::string out;
  const auto add = [&](std::string_view name) { out += (out.empty() ? "" : ", ") + std::string(name); };
  for (const Row& row : kPasses) {
    if (row.kind == kind) add(row.name);
  }
  if (kind == "typed graph") {
    for (const passes::Pass& pass : passes::all_passes()) add(pass.name);
  }
  return out;
}

template <class Table>
std::string names_of(const Table& table) {
  std::string out;
  for (const auto& [name, what] : table) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::string help() {
  std::string out = kUsage;
  const auto line = [&](std::string_view name, std::string_view what) {
    out += support::concat("  ", name, std::string(name.size() < 15 ? 15 - name.size() : 1, ' '), what, "\n");
  };
  for (std::string_view kind : {"graph", "typed graph", "kernel"}) {
    out += support::concat("Passes over a ", kind, ":\n");
    for (const Row& row : kPasses) {
      if (row.kind == kind) line(row.name, row.what);
    }
    if (kind != "typed graph") continue;
    for (const passes::Pass& pass : passes::all_passes()) line(pass.name, pass.what);
  }
  out += "Stages:\n";
  for (const auto& [name, what] : kStages) line(name, what);
  return out + "Targets of llvm and asm: " + names_of(kTargets) + " (avx512)\n" + kStatus;
}

Settings parse_options(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const tools::CommandArgument argument(argv[i]);
    const std::string_view option = argument.option, value = argument.value;
    if (!argument.file.empty()) {
      if (!s.file.empty()) throw UsageError{"more than one file"};
      s.file = argument.file;
    } else if (option == "--passes") {
      for (std::string_view name : support::split(value, ',')) {
        if (!name.empty()) s.passes.emplace_back(name);
      }
    } else if (option == "--emit") {
      s.emit = value;
    } else if (option == "--target") {
      s.target = value;
    } else {
      throw UsageError{std::string("unknown option ") + argv[i] +
                       ": there are --passes=, --emit=, --target= and --help"};
    }
  }
  if (s.file.empty()) throw UsageError{"no file; --help has passes and stages"};
  const auto check = [](const auto& table, std::string_view what, const std::string& name) {
    for (const auto& row : table) {
      if (row.first == name) return;
    }
    throw UsageError{support::concat("there is no ", what, " '", name, "': ", names_of(table))};
  };
  if (!s.emit.empty()) check(kStages, "stage", s.emit);
  check(kTargets, "target", s.target);
  return s;
}

// The first word that is no comment.
std::string_view first_word(std::string_view text) {
  for (std::string_view line : support::split(text, '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!line.empty() && line[0] != '#') return line.substr(0, line.find_first_of(" \t\r#"));
  }
  return {};
}

Unit parse(const std::string& text) {
  Unit u;
  if (first_word(text) == "kernel") {
    u.kernels.emplace_back("", kernel::parse(text));
    return u;
  }
  u.typed = passes::is_typed(text);
  if (u.typed) {
    passes::TypedText read = passes::parse_typed(text, u.env);
    u.graph = read.graph;
    u.functional = read.functional;
  } else {
    u.graph = fx::parse_graph(text);
  }
  return u;
}

void verify(const Unit& u) {
  if (!u.graph) return kernel::verify(u.kernels[0].second);
  u.graph->lint();
}

[[noreturn]] void unknown_pass(const Unit& u, const std::string& name) {
  throw UsageError{support::concat("there is no pass '", name, "' over a ", u.kind(),
                                   ", which this text is: ", pass_names(u.kind()))};
}

void run_typed(Unit& u, const Settings& s) {
  std::vector<const passes::Pass*> chosen;
  for (const std::string& name : s.passes) {
    chosen.push_back(passes::find_pass(name));
    if (!chosen.back()) unknown_pass(u, name);
  }
  const Options options;
  passes::PassContext context{u.graph, u.env, options, {}, u.functional};
  try {
    passes::verify(context);
  } catch (const InternalError& e) {  // here it is no bug but the text's mistake
    throw ValueError("the text breaks a rule of typed graphs: " + e.message().substr(0, e.message().find('\n')));
  }
  for (const passes::Pass* pass : chosen) {
    try {
      const Result<bool> changed = pass->run(context);
      if (!changed) throw ValueError(changed.reason());
      passes::verify(context);
    } catch (Error& e) {
      e.append(support::concat(" (pass ", pass->name, ")"));
      throw;
    }
  }
  for (const std::string& note : context.notes) std::cerr << "note: " << note << "\n";
  u.graph = context.graph;
  u.functional = context.functional;
  for (const fx::Node* n : u.graph->nodes()) {
    if (n->op() != fx::Opcode::CallFunction) continue;
    const auto* call = dynamic_cast<const kernel::KernelCall*>(&n->callable());
    if (call) u.kernels.emplace_back(n->name(), call->kernel);
  }
}

void run_passes(Unit& u, const Settings& s) {
  if (u.typed) return run_typed(u, s);
  std::vector<const Row*> chosen;
  for (const std::string& name : s.passes) {
    const auto fits = [&](const Row& row) { return row.kind == u.kind() && row.name == name; };
    const Row* row = std::find_if(std::begin(kPasses), std::end(kPasses), fits);
    if (row == std::end(kPasses)) unknown_pass(u, name);
    chosen.push_back(row);
  }
  verify(u);
  for (const Row* row : chosen) {
    row->run(u);
    verify(u);
  }
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw ValueError(result.reason());
  return *std::move(result);
}

std::string emit_kernel(const kernel::Kernel& k, const std::string& stage, const std::string& target) {
  if (stage == "kernels") return kernel::print(k);
  const bool llvm = stage == "llvm";
  if (const jit::CpuTarget* cpu = jit::find_target(target)) {
    const codegen::Schedule schedule = codegen::choose_schedule(k);
    return llvm ? jit::kernel_llvm(k, schedule, *cpu) : jit::kernel_assembly(k, schedule, *cpu);
  }
  int sm = 0;
  for (const auto& [name, number] : kTargets) sm = name == target ? number : sm;
  const codegen::Schedule schedule = jit::choose_gpu_schedule(k);
  return llvm ? value_of(jit::ptx_llvm(k, schedule, sm)) : value_of(jit::compile_ptx(k, schedule, sm)).text;
}

std::string emit(const Unit& u, std::string stage, const std::string& target) {
  if (stage.empty()) stage = u.graph ? "graph" : "kernels";
  const bool of_graph = stage == "graph" || stage == "fx" || stage == "table";
  if (of_graph) {
    if (!u.graph) throw ValueError("a kernel has no stage " + stage);
    if (stage == "fx") return u.graph->to_string() + "\n";
    if (stage == "table") return u.graph->format_tabular();
    return u.typed ? passes::print_typed(*u.graph, u.env, u.functional) : fx::print_text(*u.graph);
  }
  if (u.kernels.empty()) throw ValueError("there are no kernels here: the pass fuse makes them of a typed graph");
  std::string out;
  const std::string_view comment = stage == "kernels"         ? "# "
                                   : stage == "llvm"          ? "; "
                                   : target.starts_with("sm") ? "// "
                                                              : "# ";
  for (const auto& [name, k] : u.kernels) {
    if (!name.empty()) out += support::concat(comment, name, "\n");
    out += emit_kernel(k, stage, target);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string(argv[1]) == "--help") {
      std::cout << help();
      return 0;
    }
    const Settings s = parse_options(argc, argv);
    Unit u = parse(tools::read_file(s.file));
    run_passes(u, s);
    std::cout << emit(u, s.emit, s.target);
    return 0;
  } catch (const UsageError& e) {
    std::cerr << "fxjit-opt: " << e.message << "\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "fxjit-opt: " << e.what() << "\n";
    return 1;
  }
}
