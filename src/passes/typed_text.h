// Typed graphs as text (docs/text-format.md): what FXJIT_DUMP=graph prints and fxjit-opt reads.
#pragma once

#include <string>
#include <string_view>

#include "passes/pass.h"

namespace fxjit::inline v0::passes {

// Reads back equal: names, calls, types, symbols with their hints, guards, which calls are impure. What an object was
// that is no plain value is only named, and a graph with kernels is for reading: parse_typed refuses it.
std::string print_typed(const fx::Graph& graph, const ShapeEnv& env, bool functional = false);
// The same for what a broken pass left behind: where the text can't be written, the graph as torch.fx prints it, and
// why.
std::string dump_typed(const PassContext& context);

// Whether a text holds a typed graph, by its headings.
bool is_typed(std::string_view text);

// The only graph of a text, its symbols added to `env`, which is new. `functional` becomes PassContext::functional.
// ValueError with line and column.
struct TypedText {
  fx::GraphPtr graph;
  bool functional = false;
};
TypedText parse_typed(std::string_view text, ShapeEnv& env);

}  // namespace fxjit::inline v0::passes
