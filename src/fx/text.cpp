// Words and constants of the text format, and the codec that knows no torch.
#include "fx/text.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "support/errors.h"

namespace fxjit::inline v0::fx {

namespace {

// What a text names and this program does not have.
class NamedObject final : public Object {
 public:
  explicit NamedObject(ObjectText text) : text(std::move(text)) {}
  std::string type_name() const override { return "fxjit.fx.text." + text.kind; }
  bool is_constant() const override { return true; }
  void print(std::string& out) const override { out += "@" + text.kind + text.args.repr(); }

  const ObjectText text;
};

class NamedFunction final : public Callable {
 public:
  explicit NamedFunction(std::string_view name) : name_(name) {}
  std::string_view qualified_name() const override { return name_; }
  std::string_view base_name() const override {
    std::string_view name = name_;
    if (const size_t colons = name.find("::"); colons != std::string_view::npos) {
      name.remove_prefix(colons + 2);
      return name.substr(0, name.find('.'));
    }
    return name.substr(name.find_last_of(".:") + 1);
  }
  bool equal(const Object& other) const override {
    const auto* f = dynamic_cast<const NamedFunction*>(&other);
    return f && f->name_ == name_;
  }
  size_t hash() const override { return std::hash<std::string>()(name_); }
  Value call(std::span<const Value>, const Value&) const override {
    throw NameError("this program has no function " + name_ + ", which the text of the graph names");
  }

 private:
  std::string name_;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of a list of sizes in brackets at the beginning of `s`.
size_t sizes_length(std::string_view s, char open, char close) {
  if (s.empty() || s[0] != open) return 0;
  size_t i = 1, depth = 0;
  const auto part = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view(", _*+-/%()").find(c) != std::string_view::npos;
  };
  for (; i < s.size(); ++i) {
    if (depth == 0 && s[i] == close) return i + 1;
    if (!part(s[i]) || (s[i] == ')' && depth == 0)) return 0;
    depth += s[i] == '(';
    depth -= s[i] == ')';
  }
  return 0;
}

// The length of the words behind a tensor type at the beginning of `s`.
size_t marks_length(std::string_view s) {
  size_t n = 0;
  for (std::string_view mark : kTypeMarks) {
    const std::string_view rest = s.substr(n);
    if (!rest.starts_with(' ') || !rest.substr(1).starts_with(mark)) continue;
    if (rest.size() > mark.size() + 1 && is_name_char(rest[mark.size() + 1])) continue;
    n += mark.size() + 1;
  }
  return n;
}

}  // namespace

bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_word_char(char c) { return is_name_char(c) || c == '.' || c == ':' || c == '*'; }

bool is_word(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), is_word_char); }

bool is_name(std::string_view s) { return !s.empty() && std::all_of(s.begin(), s.end(), is_name_char); }

bool is_key(std::string_view s) { return is_name(s) && !is_digit(s[0]); }

size_t tensor_type_length(std::string_view s) {
  const size_t bracket = s.find('[');
  if (bracket == std::string_view::npos) return 0;
  bool known = false;
#define FXJIT_DTYPE(name, value, text, bytes, kind) known |= s.substr(0, bracket) == text;
  FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
  const size_t sizes = known ? sizes_length(s.substr(bracket), '[', ']') : 0;
  if (sizes == 0) return 0;
  size_t end = bracket + sizes;
  const size_t strides = s.substr(end, 2) == " (" ? sizes_length(s.substr(end + 1), '(', ')') : 0;
  if (strides) end += 1 + strides;
  return end + marks_length(s.substr(end));
}

std::optional<Argument> named_constant(std::string_view word) {
  using Table = std::unordered_map<std::string_view, Argument>;
  static const Table table = [] {
    Table t;
#define FXJIT_DTYPE(name, value, text, bytes, kind) t.emplace(python_name(DType::name), DType::name);
    FXJIT_FORALL_DTYPES(FXJIT_DTYPE)
#undef FXJIT_DTYPE
    for (int8_t i = 0; i <= static_cast<int8_t>(Layout::Jagged); ++i) {
      t.emplace(python_name(static_cast<Layout>(i)), static_cast<Layout>(i));
    }
    for (int8_t i = 0; i <= static_cast<int8_t>(MemoryFormat::ChannelsLast3d); ++i) {
      t.emplace(python_name(static_cast<MemoryFormat>(i)), static_cast<MemoryFormat>(i));
    }
    return t;
  }();
  const auto it = table.find(word);
  if (it == table.end()) return std::nullopt;
  return it->second;
}

std::optional<Device> parse_device(std::string_view name) {
  const size_t colon = name.find(':');
  Device d;
  while (device_type_name(d.type) != name.substr(0, colon)) {
    if (device_type_name(++d.type) == "unknown") return std::nullopt;
  }
  if (colon == std::string_view::npos) return d;
  const std::string_view digits = name.substr(colon + 1);
  int index = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0 || index > 127) return std::nullopt;
  d.index = static_cast<int8_t>(index);
  return d;
}

size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  if (s.empty()) return 0;
  if (byte(0) < 0x80) return 1;
  const size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last code point.
  const bool bad = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                   (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return bad ? 0 : n;
}

TextCodec::~TextCodec() = default;

std::optional<ObjectText> TextCodec::encode(const Object& object) {
  if (const auto* named = dynamic_cast<const NamedObject*>(&object)) return named->text;
  if (const auto* f = dynamic_cast<const Callable*>(&object)) {
    return ObjectText{"name", Argument::tuple({Argument(name_of(*f))}), {}};
  }
  return std::nullopt;
}

Argument TextCodec::decode(const ObjectText& text) {
  const bool name = text.kind == "name" && text.args.size() == 1 && text.args[0].is_str() && text.kwargs.is_none();
  if (name) return ObjectRef(find(text.args[0].as_str()));
  return ObjectRef(make_ref<NamedObject>(text));
}

std::string TextCodec::name_of(const Callable& f) {
  std::string name(f.qualified_name());
  const size_t dot = name.rfind('.');
  if (dot != std::string::npos && name.find(':') == std::string::npos) name[dot] = ':';
  return name;
}

CallableRef TextCodec::find(std::string_view name) {
  std::string dotted(name);
  if (const size_t colon = dotted.find(':'); colon != std::string::npos) dotted[colon] = '.';
  if (dotted.starts_with("operator.")) dotted.insert(0, "_");
  if (CallableRef f = builtin_function(dotted)) return f;
  return make_ref<NamedFunction>(name);
}

Argument TextCodec::meta_of(const Node& n) {
  const NodeMeta* meta = n.meta_if_any();
  if (!meta || meta->entries().empty()) return {};
  std::vector<DictEntry> entries;
  for (const auto& [key, value] : meta->entries()) entries.push_back({key, value});
  return Argument::dict(entries);
}

void TextCodec::set_meta(Node& n, const Argument& meta) {
  for (const DictEntry& e : meta.entries()) n.meta().set(e.key.as_str(), e.value);
}

std::string TextCodec::comment_on(const Node&) { return {}; }

TextCodec& default_codec() {
  static TextCodec codec;  // has no state
  return codec;
}

}  // namespace fxjit::inline v0::fx
