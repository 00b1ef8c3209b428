// Random graphs through the text format, and texts with random damage through the parser. The seeds are fixed.
#include <bit>
#include <random>

#include "fx_test_util.h"
#include "fxjit/fx/text.h"

namespace fxjit::fx::test {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }

  GraphPtr graph() {
    static const char* const kTypes[] = {"bf16[4, s0 * 2]", "f32[(s0 + 1), max(s1, 2)] (1, (s0 // 2)) cuda grad",
                                         "f32[2] (grad"};
    GraphPtr g = Graph::create();
    const size_t count = 1 + below(12);
    for (size_t i = 0; i < count; ++i) {
      Argument type = below(3) ? Argument() : below(2) ? Argument(kTypes[below(3)]) : value(2);
      const auto op = static_cast<Opcode>(below(5));
      Argument target = Argument(text());
      if (op == Opcode::CallFunction) target = ObjectRef(op_of());
      Node* n = g->create_node(op, target, Argument::tuple(values()), kwargs(), {}, type);
      if (below(8) == 0) n->set_name(text() + std::to_string(i));
      if (below(4) == 0) n->meta().set(text(), value(3));
      nodes_.push_back(n);
    }
    g->output(value(3), below(2) ? Argument() : Argument(text()));
    return g;
  }

 private:
  CallableRef op_of() {
    static const char* const kNames[] = {"add", "getitem", "matmul", "neg"};
    return below(4) ? op(kNames[below(4)]) : make_function("a module." + text(), {});
  }

  std::string text() {
    static constexpr std::string_view kPieces[] = {"x",    "_1",   ".",      ":",      "*", " ",
                                                   "\"",   "\\",   "\n",     "=",      "%", "\xc3\xbc",
                                                   "\xff", "\x01", "return", "f32[2]", "#", "!"};
    std::string out;
    for (size_t n = below(5); n > 0; --n) out += kPieces[below(std::size(kPieces))];
    return out;
  }

  std::vector<Argument> values() {
    std::vector<Argument> out;
    for (size_t n = below(4); n > 0; --n) out.push_back(value(3));
    return out;
  }

  Argument kwargs() {
    std::vector<DictEntry> out;
    for (size_t n = below(3); n > 0; --n) out.push_back({Argument(text()), value(3)});
    return Argument::dict(out);
  }

  Argument value(int depth) {
    const size_t kind = below(depth > 0 ? 19 : 12);
    if (kind == 11 || (kind < 4 && !nodes_.empty())) {
      return nodes_.empty() ? Argument() : Argument(nodes_[below(nodes_.size())]);
    }
    switch (kind) {
      case 4:
        return static_cast<int64_t>(random_() >> below(64));
      case 5:
        return std::bit_cast<double>(random_());
      case 6:
        return Argument(text());
      case 7:
        return std::complex<double>(std::bit_cast<double>(random_()), 1.0);
      case 8:
        return DType::Float16;
      case 9:
        return Device{static_cast<int8_t>(below(21)), static_cast<int8_t>(static_cast<int>(below(9)) - 1)};
      case 10:
        return Argument::ellipsis();
      case 12:
        return Argument::list(several(depth));
      case 13:
        return Argument::tuple(several(depth));
      case 14:
        return Argument::slice(value(depth - 1), value(depth - 1), value(depth - 1));
      case 15:
        return Argument::named_tuple(op_of(), several(depth));
      case 16:
        return Argument::dict({{Argument(text()), value(depth - 1)}, {value(0), value(depth - 1)}});
      case 17:
        return Argument::range(1, value(depth - 1));
      default:
        return below(2) == 0;
    }
  }

  std::vector<Argument> several(int depth) {
    std::vector<Argument> out;
    for (size_t n = below(4); n > 0; --n) out.push_back(value(depth - 1));
    return out;
  }

  std::mt19937_64 random_;
  std::vector<Node*> nodes_;
};

TEST(TextFuzz, PrintParsePrint) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const GraphPtr g = Generator(seed).graph();
    const std::string text = print_text(*g);
    const GraphPtr read = parse_graph(text);
    ASSERT_EQ(print_text(*read), text) << "seed " << seed;
    ASSERT_EQ(read->size(), g->size()) << "seed " << seed;
    read->lint();
  }
}

// Whatever the damage, the answer is a graph that prints, or a ValueError with a place.
TEST(TextFuzz, DamagedTexts) {
  size_t refused = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Generator generator(seed);
    const std::string good = print_text(*generator.graph());
    for (int attempt = 0; attempt < 10; ++attempt) {
      std::string text = good;
      for (size_t n = 1 + generator.below(3); n > 0; --n) {
        const size_t at = generator.below(text.size() + 1);
        const size_t kind = generator.below(4);
        const char c = "\"\\()[]{}%@!=:,.0x-\n #\xff"[generator.below(22)];
        if (kind == 0) text.resize(at);
        if (kind == 1) text.insert(at, 1, c);
        if (kind == 2 && at < text.size()) text[at] = c;
        if (kind == 3) text.erase(at, generator.below(9));
      }
      try {
        print_text(parse_text(text));
        ++accepted;
      } catch (const ValueError& e) {
        ASSERT_EQ(std::string(e.what()).rfind("fx text, line ", 0), 0u) << "seed " << seed;
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace fxjit::fx::test
