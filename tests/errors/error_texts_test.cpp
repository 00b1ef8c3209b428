// What a user reads: one row per mistake, with the class and the part of the text that says what to do. The Python
// faces of the same errors are in tests/python/fx/test_errors.py.
#include <gtest/gtest.h>

#include <functional>

#include "fxjit/errors.h"
#include "fxjit/fx/fx.h"
#include "fxjit/options.h"
#include "kernel/kernel.h"

namespace fxjit::inline v0 {
namespace {

using fx::Argument;
using fx::Graph;
using fx::GraphPtr;
using fx::Node;

struct Mistake {
  const char* name;
  std::function<void()> make;
  ErrorKind kind;
  const char* text;
};

// x + x, and what was made.
struct Sum {
  GraphPtr graph = Graph::create();
  Node* x = graph->placeholder("x");
  Node* sum = graph->call_function(fx::builtin_function("_operator.add"), Argument::tuple({x, x}));
  Node* result = graph->output(sum);
};

void run(const GraphPtr& graph, std::vector<fx::Value> args) { fx::Interpreter(nullptr, *graph).run(args); }

const Mistake kMistakes[] = {
    // ---- graphs ----
    {"a target of the wrong kind", [] { Sum().graph->create_node(fx::Opcode::CallMethod, 3, {}, {}); },
     ErrorKind::Value, "has type int but a str is expected"},
    {"a list for args",
     [] {
       Sum s;
       s.graph->call_method("relu", Argument::list({s.x}));
     },
     ErrorKind::Assertion, "args must be a tuple, got list"},
    {"erasing a used node",
     [] {
       Sum s;
       s.graph->erase_node(s.x);
     },
     ErrorKind::Runtime, "Tried to erase Node x but it still had 1 users in the graph: {add: None}!"},
    {"erasing from another graph",
     [] {
       Sum s, t;
       s.graph->erase_node(t.result);
     },
     ErrorKind::Runtime, "Attempting to remove output from wrong graph!"},
    {"inserting in another graph",
     [] {
       Sum s, t;
       auto scope = s.graph->inserting_before(t.sum);
     },
     ErrorKind::Assertion, "Node to insert before is not in graph."},
    {"moving across graphs",
     [] {
       Sum s, t;
       s.sum->prepend(t.x);
     },
     ErrorKind::Assertion, "Attempting to move a Node into a different Graph"},
    {"an argument that is not there", [] { Sum().sum->update_arg(5, 1); }, ErrorKind::Index, "out of range"},
    {"an argument of another graph",
     [] {
       Sum s, t;
       s.sum->update_arg(0, t.x);
       s.graph->lint();
     },
     ErrorKind::Runtime, "Argument 'x' of Node 'add' does not belong to this Graph"},
    {"a use before the definition",
     [] {
       Sum s;
       s.x->prepend(s.sum);
       s.graph->lint();
     },
     ErrorKind::Runtime, "Argument 'x' of Node 'add' was used before it has been defined!"},
    {"finding functions without a target", [] { Sum().graph->find_nodes(fx::Opcode::CallFunction, Argument()); },
     ErrorKind::Assertion, "target must not be None for call_function op"},
    // ---- tracing ----
    {"a branch on a Proxy", [] { fx::symbolic_trace([](fx::Proxy x) { return x ? x : x + 1; }, {"x"}); },
     ErrorKind::Trace, "symbolically traced variables cannot be used as inputs to control flow"},
    {"names that are not one for each parameter", [] { fx::symbolic_trace([](fx::Proxy x) { return x; }, {"x", "y"}); },
     ErrorKind::Value, "got 2 names for a function of 1 parameters"},
    {"Proxies of two graphs",
     [] {
       Sum s, t;
       fx::GraphAppendingTracer a(*s.graph), b(*t.graph);
       auto add = fx::wrap("add_both", [](auto x, auto y) { return x + y; });
       add(a.proxy(s.x), b.proxy(t.x));
     },
     ErrorKind::Runtime, "Found multiple different tracers"},
    // ---- running ----
    {"too few arguments", [] { run(Sum().graph, {}); }, ErrorKind::Runtime,
     "Expected positional argument for parameter x"},
    {"too many arguments", [] { run(Sum().graph, {1, 2}); }, ErrorKind::Type,
     "takes 1 positional argument but 2 were given"},
    {"an operator that fails", [] { run(Sum().graph, {fx::Value("a")}); }, ErrorKind::Type, "While executing %add"},
    // ---- options ----
    {"an unknown option", [] { Options().set("strickt", "1"); }, ErrorKind::Type, "strict"},
    {"a value that does not fit", [] { Options().set("strict", "maybe"); }, ErrorKind::Value,
     "option 'strict' got 'maybe'; it takes"},
    // ---- texts ----
    {"a kernel's text", [] { kernel::parse("kernel\naxis p\nnonsense"); }, ErrorKind::Value, "kernel text, line "},
};

TEST(ErrorTexts, SayWhatToDo) {
  for (const Mistake& m : kMistakes) {
    SCOPED_TRACE(m.name);
    try {
      m.make();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(to_string(e.kind()), to_string(m.kind)) << e.what();
      EXPECT_NE(std::string(e.what()).find(m.text), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace fxjit::inline v0
