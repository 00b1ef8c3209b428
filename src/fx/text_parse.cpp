// What text_print.cpp writes, read again. One pass over the text.
#include <bit>
#include <limits>
#include <unordered_map>

#include "fx/text_reader.h"
#include "fx/text_types.h"
#include "support/errors.h"

namespace fxjit::inline v0::fx {

namespace {

using support::concat;

class Parser {
 public:
  Parser(std::string_view text, TextCodec& codec) : in_(text), codec_(codec) {
    if (ShapeEnv* shapes = codec.shapes()) types_.emplace(in_, *shapes);
  }

  TextDocument document() {
    header();
    TextDocument d;
    for (in_.skip_lines(); !in_.at_end(); in_.skip_lines()) {
      const size_t place = in_.place();
      if (in_.take_keyword("value")) {
        add(d.values, in_.word_or_quoted("the name of the value"), place);
        in_.skip_blanks();
        in_.expect('=');
        d.values.back().second = value();
        in_.end_of_line();
      } else if (in_.take_keyword("symbol")) {
        types(place).symbol();
        in_.end_of_line();
      } else if (in_.take_keyword("guard")) {
        types(place).guard();
        in_.end_of_line();
      } else {
        typed_ = in_.take_keyword("typed");
        if (typed_) types(place);
        if (!in_.take_keyword("graph")) {
          in_.fail_at(place, "expected value, symbol, guard, graph, typed graph or a line of the graph before");
        }
        add(d.graphs, in_.peek() == '"' ? in_.quoted() : "", place);
        in_.skip_blanks();
        in_.expect(':');
        in_.end_of_line();
        d.graphs.back().second = graph();
      }
    }
    return d;
  }

  Value single_value() {
    in_.skip_lines();
    Value v = value();
    in_.skip_lines();
    if (!in_.at_end()) in_.expected("the end of the text");
    return v;
  }

 private:
  // Errors of the codec get the place.
  template <class F>
  auto located(size_t place, F&& f) {
    try {
      return f();
    } catch (const Error& e) {
      in_.fail_at(place, e.what());
    }
  }

  void header() {
    in_.skip_lines();
    const size_t place = in_.place();
    if (in_.word() != "fx") in_.fail_at(place, concat("a text begins with the line: fx ", kTextVersion));
    in_.skip_blanks();
    const size_t version_place = in_.place();
    const std::string_view version = in_.expect_word("the version of the format");
    if (version != std::to_string(kTextVersion)) {
      in_.fail_at(version_place, concat("format ", version, ": this version of fxjit reads ", kTextVersion));
    }
    in_.end_of_line();
  }

  TypeParser& types(size_t place) {
    if (!types_) in_.fail_at(place, "this belongs to typed graphs, which only fxjit-opt reads");
    return *types_;
  }

  // A second section of one name is an error.
  template <class T>
  void add(std::vector<std::pair<std::string, T>>& sections, std::string name, size_t place) {
    if (!section_names_.emplace(concat(std::is_same_v<T, Value> ? "value " : "graph ", name), 0).second) {
      in_.fail_at(place, concat("the name \"", name, "\" is given twice"));
    }
    sections.emplace_back(std::move(name), T());
  }

  // ---- graphs ----
  GraphPtr graph() {
    GraphPtr g = Graph::create();
    nodes_.clear();
    for (in_.skip_lines(); !in_.at_end(); in_.skip_lines()) {
      if (in_.peek() == '%') {
        node(*g);
      } else if (in_.take_keyword("return")) {
        finish(*g, Opcode::Output, "output", "output", Argument::tuple({value()}), {}, {}, {}, in_.place());
      } else {
        break;
      }
      in_.end_of_line();
    }
    nodes_.clear();
    return g;
  }

  void node(Graph& g) {
    const size_t place = in_.place();
    in_.skip(1);
    const std::string name = in_.name("the name of a node");
    in_.skip_blanks();
    Argument type;
    TensorTypePtr tensor_type;
    if (in_.take(':')) {
      if (typed_) {
        tensor_type = types_->type();
      } else {
        type = annotation();
      }
    }
    in_.expect('=');
    const auto [op, target] = callee(name);
    in_.skip_blanks();
    Argument args, kwargs;
    if (in_.take('(')) std::tie(args, kwargs) = call();
    finish(g, op, target, name, args, kwargs, type, std::move(tensor_type), place);
  }

  std::pair<Opcode, Argument> callee(const std::string& name) {
    const size_t place = in_.place();
    const std::string_view word = in_.expect_word("an opcode or the name of a function");
    if (word.find(':') != std::string_view::npos) return {Opcode::CallFunction, function(word, place)};
    const std::optional<Opcode> op = parse_opcode(word);
    if (!op || *op == Opcode::Root) {
      in_.fail_at(place, concat("'", word, "' is no opcode, and functions are written as module:name"));
    }
    in_.skip_blanks();
    if (*op == Opcode::Placeholder && in_.peek() != '"' && !is_word_char(in_.peek())) return {*op, name};
    const size_t target_place = in_.place();
    const std::string target = in_.word_or_quoted("a target");
    if (*op == Opcode::CallFunction) return {*op, function(target, target_place)};
    return {*op, target};
  }

  Argument function(std::string_view name, size_t place) {
    const CallableRef f = located(place, [&] { return codec_.find(name); });
    if (!f) in_.fail_at(place, concat("there is no function ", name));
    return ObjectRef(f);
  }

  void finish(Graph& g, Opcode op, const Argument& target, const std::string& name, const Argument& args,
              const Argument& kwargs, const Argument& type, TensorTypePtr tensor_type, size_t place) {
    if (nodes_.contains(name)) in_.fail_at(place, concat("there is a node %", name, " already"));
    Node* n = located(place, [&] { return g.create_node(op, target, args, kwargs, name, type); });
    if (n->name() != name) n->set_name(name);
    n->set_tensor_type(std::move(tensor_type));
    nodes_.emplace(name, n);
    in_.skip_blanks();
    if (!in_.take('!')) return;
    const size_t meta_place = in_.place();
    const Argument meta = value();
    bool named = meta.is(ArgumentKind::Dict);
    for (size_t i = 0; named && i < meta.size(); ++i) named = meta.entries()[i].key.is_str();
    if (!named) in_.fail_at(meta_place, "expected a dict with strings as keys behind !");
    located(meta_place, [&] { codec_.set_meta(*n, meta); });
  }

  Argument annotation() {
    const std::string_view rest = in_.rest();
    const size_t n = tensor_type_length(rest.substr(0, rest.find_first_of("=\n")));
    if (n == 0) return value();
    const Argument type(rest.substr(0, n));
    in_.skip(n);
    in_.skip_blanks();
    return type;
  }

  // ---- values ----
  Argument value() {
    if (++depth_ > kMaxTextDepth) in_.fail(concat("a value is nested deeper than ", kMaxTextDepth));
    Argument a = plain_value();
    --depth_;
    in_.skip_blanks();
    return a;
  }

  Argument plain_value() {
    const char c = in_.peek();
    if (c == '"') return in_.quoted();
    if (c == '%') return reference();
    if (c == '@') return object();
    if (in_.take('[')) return Argument::list(items(']'));
    if (in_.take('(')) return tuple();
    if (in_.take('{')) return dict();
    if (c == '-' || (c >= '0' && c <= '9')) return in_.number();
    if (in_.rest().starts_with("...")) {
      in_.skip(3);
      return Argument::ellipsis();
    }
    return word_value();
  }

  Argument reference() {
    const size_t place = in_.place();
    in_.skip(1);
    const std::string name = in_.name("the name of a node");
    const auto it = nodes_.find(name);
    if (it == nodes_.end()) in_.fail_at(place, concat("there is no node %", name, " before this line"));
    return it->second;
  }

  Argument object() {
    const size_t place = in_.place();
    in_.skip(1);
    ObjectText text{in_.name("the kind of the object"), {}, {}};
    in_.skip_blanks();
    in_.expect('(');
    std::tie(text.args, text.kwargs) = call();
    return located(place, [&] { return codec_.decode(text); });
  }

  // Items up to and with the closing character; `comma` says whether there was one behind the last.
  std::vector<Argument> items(char close, bool* comma = nullptr) {
    std::vector<Argument> out;
    bool more = true;
    while (!in_.take(close)) {
      if (!more) in_.expected(concat("',' or '", close, "'"));
      out.push_back(value());
      more = in_.take(',');
    }
    if (comma) *comma = more;
    return out;
  }

  Argument tuple() {
    bool comma = false;
    const size_t place = in_.place();
    const std::vector<Argument> parts = items(')', &comma);
    if (parts.size() == 1 && !comma) in_.fail_at(place, "a tuple of one item ends with a comma: (x,)");
    return Argument::tuple(parts);
  }

  Argument dict() {
    std::vector<DictEntry> entries;
    bool more = true;
    while (!in_.take('}')) {
      if (!more) in_.expected("',' or '}'");
      Argument key = value();
      in_.expect(':');
      entries.push_back({std::move(key), value()});
      more = in_.take(',');
    }
    return Argument::dict(entries);
  }

  // Arguments up to the closing parenthesis. Empty kwargs are None.
  std::pair<Argument, Argument> call() {
    std::vector<Argument> args;
    std::vector<DictEntry> kwargs;
    bool more = true;
    while (!in_.take(')')) {
      if (!more) in_.expected("',' or ')'");
      const size_t place = in_.place();
      if (const std::optional<std::string> key = in_.keyword()) {
        kwargs.push_back({*key, value()});
      } else {
        if (!kwargs.empty()) in_.fail_at(place, "a positional argument behind one with a keyword");
        args.push_back(value());
      }
      more = in_.take(',');
    }
    Argument dict = kwargs.empty() ? Argument() : Argument::dict(kwargs);
    if (dict.is(ArgumentKind::Dict) && dict.size() != kwargs.size()) in_.fail("a keyword is given twice");
    return {Argument::tuple(args), dict};
  }

  Argument word_value() {
    const size_t place = in_.place();
    const std::string_view word = in_.dotted();
    if (word == "None") return {};
    if (word == "True") return true;
    if (word == "False") return false;
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (std::optional<Argument> constant = named_constant(word)) return *constant;
    in_.skip_blanks();
    if (word == "nan") return nan(place);
    if (word == "complex" || word == "slice" || word == "range" || word == "device" || word == "namedtuple") {
      in_.expect('(');
      return constructed(word, items(')'), place);
    }
    in_.fail_at(place, concat("'", word, "' is no value"));
  }

  Argument nan(size_t place) {
    uint64_t bits = 0x7ff8000000000000;
    if (in_.take('(')) {
      bits = in_.bits();
      in_.skip_blanks();
      in_.expect(')');
    }
    const auto v = std::bit_cast<double>(bits);
    if (v == v) in_.fail_at(place, "these bits are a number");
    return v;
  }

  Argument constructed(std::string_view word, const std::vector<Argument>& parts, size_t place) {
    const auto all = [&](size_t count, auto&& test) {
      bool ok = parts.size() == count;
      for (const Argument& p : parts) ok = ok && test(p);
      return ok;
    };
    const auto any = [](const Argument&) { return true; };
    if (word == "slice" && all(3, any)) return Argument::slice(parts[0], parts[1], parts[2]);
    if (word == "range" && all(3, any)) return Argument::range(parts[0], parts[1], parts[2]);
    if (word == "complex" && all(2, [](const Argument& p) { return p.is_float(); })) {
      return std::complex<double>(parts[0].as_float(), parts[1].as_float());
    }
    if (word == "device" && all(1, [](const Argument& p) { return p.is_str(); })) {
      if (const std::optional<Device> d = parse_device(parts[0].as_str())) return *d;
      in_.fail_at(place, concat("there is no device ", parts[0].repr()));
    }
    if (word == "namedtuple" && !parts.empty() && parts[0].is_object()) {
      return Argument::named_tuple(ObjectRef(&parts[0].as_object()), std::span(parts).subspan(1));
    }
    in_.fail_at(place,
                "expected slice(start, stop, step), range(start, stop, step), complex(1.0, 2.0), device(\"cpu\") or "
                "namedtuple(@type, fields…)");
  }

  TextReader in_;
  TextCodec& codec_;
  std::optional<TypeParser> types_;
  bool typed_ = false;                            // the graph that is read
  std::unordered_map<std::string, Node*> nodes_;  // of the graph that is read, by name
  std::unordered_map<std::string, int> section_names_;
  int depth_ = 0;
};

}  // namespace

TextDocument parse_text(std::string_view text, TextCodec* codec) {
  return Parser(text, codec ? *codec : default_codec()).document();
}

GraphPtr parse_graph(std::string_view text, TextCodec* codec) {
  TextDocument d = parse_text(text, codec);
  if (d.graphs.size() != 1) throw ValueError(concat("fx text: expected one graph, found ", d.graphs.size()));
  return d.graphs[0].second;
}

Value parse_value(std::string_view text, TextCodec* codec) {
  return Parser(text, codec ? *codec : default_codec()).single_value();
}

}  // namespace fxjit::inline v0::fx
