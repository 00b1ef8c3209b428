// Graphs and values as text that reads back: docs/text-format.md has the grammar.
//
//   std::string text = fx::print_text(graph);
//   fx::GraphPtr same = fx::parse_graph(text);
//
// What is printed reads back equal: names, targets, arguments of every kind, annotations, meta. (`Graph::to_string` is
// what torch.fx prints, and loses types.)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fxjit/fx/graph.h"
#include "fxjit/sym.h"

namespace fxjit::inline v0::fx {

// An object of another floor as text: @kind(args, key=value).
struct ObjectText {
  std::string kind;
  Argument args;    // a Tuple
  Argument kwargs;  // a Dict with Str keys, or None
};

// How objects and functions are written and found again. The one given here knows no torch: functions of
// `builtin_function` are found, and what has another name is kept under it, prints the same again, and raises NameError
// when it is called.
class FXJIT_API TextCodec {
 public:
  virtual ~TextCodec();
  // Empty where the object has no text; printing is then a ValueError that says where it occurred.
  virtual std::optional<ObjectText> encode(const Object& object);
  // The value that was written as `text`. An Error thrown here is reported with line and column.
  virtual Argument decode(const ObjectText& text);
  // The name of a call_function's target, "module:name" or "namespace::operator", and the function of that name.
  virtual std::string name_of(const Callable& f);
  virtual CallableRef find(std::string_view name);
  // What of a node's meta is kept: a Dict with Str keys, or None. By default all of NodeMeta's own entries.
  virtual Argument meta_of(const Node& n);
  virtual void set_meta(Node& n, const Argument& meta);
  // Where the symbols of a typed graph's sizes are. Where it is null graphs are printed without their tensor types, and
  // typed ones are not read.
  virtual ShapeEnv* shapes() { return nullptr; }
  // A comment behind the node's line; empty: none.
  virtual std::string comment_on(const Node& n);
};

// A text holds named values and named graphs, each kind in order.
struct TextDocument {
  std::vector<std::pair<std::string, Value>> values;
  std::vector<std::pair<std::string, GraphPtr>> graphs;
};

inline constexpr int kTextVersion = 1;
// Values that are nested deeper are neither printed nor read.
inline constexpr int kMaxTextDepth = 100;

// ValueError for what has no text: an object that the codec does not know, two nodes of one name, an argument that is
// no earlier node of the same graph.
FXJIT_API std::string print_text(const TextDocument& document, TextCodec* codec = nullptr);
FXJIT_API std::string print_text(const Graph& graph, TextCodec* codec = nullptr);
FXJIT_API std::string print_text(const Value& value, TextCodec* codec = nullptr);

// ValueError "fx text, line 3, column 7: …" for anything that the grammar does not allow. Linear in the text.
FXJIT_API TextDocument parse_text(std::string_view text, TextCodec* codec = nullptr);
// The only graph of a text.
FXJIT_API GraphPtr parse_graph(std::string_view text, TextCodec* codec = nullptr);
// One value.
FXJIT_API Value parse_value(std::string_view text, TextCodec* codec = nullptr);

}  // namespace fxjit::inline v0::fx
