// Graphs and values to text that reads back.
#include <bit>
#include <cmath>
#include <unordered_map>

#include "fx/text_types.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

namespace {

using Kind = ArgumentKind;
using support::concat;

constexpr uint64_t kPlainNan = 0x7ff8000000000000;

void append_hex(std::string& out, uint64_t v, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[v >> shift & 15];
}

void append_quoted(std::string& out, std::string_view s) {
  out += '"';
  for (size_t i = 0; i < s.size();) {
    const size_t n = utf8_length(s.substr(i));
    const char c = s[i];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (n == 0 || (n == 1 && (c < 0x20 || c == 0x7f))) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(c), 2);
    } else {
      out += s.substr(i, n);
      i += n;
      continue;
    }
    ++i;
  }
  out += '"';
}

void append_word(std::string& out, std::string_view s) {
  if (is_word(s)) {
    out += s;
  } else {
    append_quoted(out, s);
  }
}

void append_name(std::string& out, std::string_view s) {
  out += '%';
  if (is_name(s)) {
    out += s;
  } else {
    append_quoted(out, s);
  }
}

void append_float(std::string& out, double v) {
  const auto bits = std::bit_cast<uint64_t>(v);
  if (std::isnan(v) && bits != kPlainNan) {
    out += "nan(0x";
    append_hex(out, bits, 16);
    out += ")";
  } else {
    support::append(out, v);
  }
}

class Printer {
 public:
  Printer(std::string& out, TextCodec& codec) : out_(out), codec_(codec) {}

  void graph(const Graph& g) {
    graph_ = &g;
    for (const Node* n : g.nodes()) {
      node_ = n;
      out_ += "  ";
      node(*n);
      out_ += "\n";
      if (!names_.emplace(n->name(), n).second) fail(concat("there are two nodes of the name ", n->name()));
    }
    node_ = nullptr;
    graph_ = nullptr;
    names_.clear();
  }

  void value(const Argument& a) {
    if (++depth_ > kMaxTextDepth) fail(concat("a value is nested deeper than ", kMaxTextDepth));
    if (a.is_aggregate()) {
      aggregate(a);
    } else {
      leaf(a);
    }
    --depth_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(
        concat("cannot be written as text: ", what,
               node_ ? concat(" (at node ", node_->name(), " of opcode ", to_string(node_->op()), ")") : ""));
  }

  void node(const Node& n) {
    if (plain_output(n)) {
      out_ += "return ";
      value(n.arg(0));
    } else {
      append_name(out_, n.name());
      annotation(n);
      out_ += " = ";
      target(n);
      if (n.args().size() || n.kwargs().size()) {
        out_ += '(';
        call(n.args(), n.kwargs());
        out_ += ')';
      }
    }
    const Argument meta = codec_.meta_of(n);
    if (!meta.is_none()) {
      out_ += " !";
      value(meta);
    }
    if (const std::string comment = codec_.comment_on(n); !comment.empty()) out_ += "  # " + comment;
  }

  static bool plain_output(const Node& n) {
    return n.op() == Opcode::Output && n.name() == "output" && n.target_str() == "output" && n.type().is_none() &&
           n.args().size() == 1 && n.kwargs().size() == 0;
  }

  void annotation(const Node& n) {
    if (ShapeEnv* shapes = codec_.shapes()) {
      if (!n.tensor_type()) return;
      out_ += " : ";
      return append_type(out_, *shapes, *n.tensor_type());
    }
    const Argument& type = n.type();
    if (type.is_none()) return;
    out_ += " : ";
    const std::string_view text = type.is_str() ? type.as_str() : std::string_view();
    if (!text.empty() && tensor_type_length(text) == text.size()) {
      out_ += text;
    } else {
      value(type);
    }
  }

  void target(const Node& n) {
    const bool function = n.op() == Opcode::CallFunction;
    const std::string name = function ? codec_.name_of(n.callable()) : std::string(n.target_str());
    // A function whose name has a colon is no opcode.
    if (!function || !is_word(name) || name.find(':') == std::string::npos) out_ += to_string(n.op());
    if (n.op() == Opcode::Placeholder && name == n.name()) return;
    if (out_.back() != ' ') out_ += ' ';
    append_word(out_, name);
  }

  void call(const Argument& args, const Argument& kwargs) {
    bool first = true;
    const auto comma = [&] {
      if (!std::exchange(first, false)) out_ += ", ";
    };
    for (const Argument& a : args.items()) {
      comma();
      value(a);
    }
    if (kwargs.is_none()) return;
    for (const DictEntry& e : kwargs.entries()) {
      comma();
      if (!e.key.is_str()) fail("a keyword that is no string");
      if (is_key(e.key.as_str())) {
        out_ += e.key.as_str();
      } else {
        append_quoted(out_, e.key.as_str());
      }
      out_ += '=';
      value(e.value);
    }
  }

  void object(const Object& o) {
    const std::optional<ObjectText> text = codec_.encode(o);
    if (!text) fail(concat("a value of type ", o.type_name()));
    out_ += "@" + text->kind + "(";
    call(text->args, text->kwargs);
    out_ += ")";
  }

  void reference(const Node& n) {
    const auto it = graph_ ? names_.find(n.name()) : names_.end();
    if (it == names_.end() || it->second != &n) {
      fail(concat("%", n.name(), " is no earlier node of this graph"));
    }
    append_name(out_, n.name());
  }

  void leaf(const Argument& a) {
    switch (a.kind()) {
      case Kind::Float:
        return append_float(out_, a.as_float());
      case Kind::Complex:
        out_ += "complex(";
        append_float(out_, a.as_complex().real());
        out_ += ", ";
        append_float(out_, a.as_complex().imag());
        out_ += ")";
        return;
      case Kind::Str:
        return append_quoted(out_, a.as_str());
      case Kind::Device:
        out_ += "device(\"" + python_name(a.as_device()) + "\")";
        return;
      case Kind::Ellipsis:
        out_ += "...";
        return;
      case Kind::Node:
        return reference(*a.as_node());
      case Kind::Object:
        return object(a.as_object());
      case Kind::None:
      case Kind::Bool:
      case Kind::Int:
      case Kind::DType:
      case Kind::Layout:
      case Kind::MemoryFormat:
      case Kind::List:
      case Kind::Tuple:
      case Kind::NamedTuple:
      case Kind::Dict:
      case Kind::Slice:
      case Kind::Range:
        out_ += a.to_string();
        return;
    }
  }

  void items(std::string_view before, std::span<const Argument> parts, std::string_view behind) {
    out_ += before;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i) out_ += ", ";
      value(parts[i]);
    }
    out_ += behind;
  }

  void aggregate(const Argument& a) {
    if (a.is(Kind::Dict)) return dict(a);
    if (a.is(Kind::List)) return items("[", a.items(), "]");
    if (a.is(Kind::Tuple)) return items("(", a.items(), a.size() == 1 ? ",)" : ")");
    if (a.is(Kind::Slice)) return items("slice(", a.items(), ")");
    if (a.is(Kind::Range)) return items("range(", a.items(), ")");
    const ObjectRef type = a.type_object();
    out_ += "namedtuple(";
    object(*type);
    items(a.size() ? ", " : "", a.items(), ")");
  }

  void dict(const Argument& a) {
    out_ += '{';
    for (const DictEntry& e : a.entries()) {
      if (&e != a.entries().data()) out_ += ", ";
      value(e.key);
      out_ += ": ";
      value(e.value);
    }
    out_ += '}';
  }

  std::string& out_;
  TextCodec& codec_;
  const Graph* graph_ = nullptr;
  const Node* node_ = nullptr;
  std::unordered_map<std::string_view, const Node*> names_;  // of the nodes before this one
  int depth_ = 0;
};

}  // namespace

std::string print_text(const TextDocument& document, TextCodec* codec) {
  std::string out = concat("fx ", kTextVersion, "\n");
  Printer printer(out, codec ? *codec : default_codec());
  for (const auto& [name, value] : document.values) {
    out += "value ";
    append_word(out, name);
    out += " = ";
    printer.value(value);
    out += "\n";
  }
  const ShapeEnv* shapes = codec ? codec->shapes() : nullptr;
  if (shapes) append_symbols(out, *shapes);
  for (const auto& [name, graph] : document.graphs) {
    out += shapes ? "typed graph" : "graph";
    if (!name.empty()) {
      out += ' ';
      append_quoted(out, name);
    }
    out += ":\n";
    printer.graph(*graph);
  }
  return out;
}

std::string print_text(const Graph& graph, TextCodec* codec) {
  TextDocument document;
  document.graphs.emplace_back("", GraphPtr(GraphPtr(), const_cast<Graph*>(&graph)));  // borrowed
  return print_text(document, codec);
}

std::string print_text(const Value& value, TextCodec* codec) {
  std::string out;
  Printer(out, codec ? *codec : default_codec()).value(value);
  return out;
}

}  // namespace fxjit::inline v0::fx
