#include "fxjit/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fxjit/errors.h"

namespace fxjit {
namespace {

std::string error_of(auto&& action) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(to_string(e.kind())) + ": " + e.what();
  }
  return "";
}

TEST(Options, DefaultsAreThoseOfTheTable) {
  const Options options;
  EXPECT_FALSE(options.strict);
  EXPECT_EQ(options.target, "auto");
  EXPECT_EQ(options.nontemporal_bytes, 32 << 20);
  EXPECT_EQ(options.max_specialisations, 8);
  for (const OptionInfo& row : option_table()) {
    EXPECT_EQ(options.get(row.name), row.default_text) << row.name;
    EXPECT_FALSE(row.help.empty());
    EXPECT_TRUE(row.variable.starts_with("FXJIT_"));
  }
}

TEST(Options, EveryOptionTakesBackWhatItGives) {
  for (const OptionInfo& row : option_table()) {
    Options options;
    options.set(row.name, options.get(row.name));
    EXPECT_EQ(options, Options()) << row.name;
  }
}

TEST(Options, AnUnknownOptionNamesTheNearestAndAllKnownOnes) {
  Options options;
  const std::string text = error_of([&] { options.set("strct", "1"); });
  EXPECT_TRUE(text.starts_with("TypeError: unknown option 'strct'; did you mean 'strict'?")) << text;
  for (const OptionInfo& row : option_table()) EXPECT_NE(text.find(row.name), text.npos) << row.name;
}

TEST(Options, AValueThatDoesNotFitIsRefused) {
  Options options;
  EXPECT_EQ(error_of([&] { options.set("target", "sse"); }),
            "ValueError: option 'target' got 'sse'; it takes one of auto|avx512|avx2");
  EXPECT_NE(error_of([&] { options.set("strict", "maybe"); }), "");
  EXPECT_NE(error_of([&] { options.set("max_specialisations", "-1"); }), "");
  EXPECT_NE(error_of([&] { options.set("max_specialisations", "3x"); }), "");
  options.set("target", "avx2");
  EXPECT_EQ(options.target, "avx2");
}

TEST(Options, TheEnvironmentOverridesDefaultsAndIsNamedInErrors) {
  setenv("FXJIT_STRICT", "on", 1);
  EXPECT_TRUE(Options::from_environment().strict);
  setenv("FXJIT_STRICT", "perhaps", 1);
  EXPECT_NE(error_of([] { Options::from_environment(); }).find("FXJIT_STRICT"), std::string::npos);
  unsetenv("FXJIT_STRICT");
  EXPECT_FALSE(Options::from_environment().strict);
}

TEST(Options, SkipIsAListOfPasses) {
  Options options;
  options.skip = "cse,dce";
  EXPECT_TRUE(options.skips("cse"));
  EXPECT_TRUE(options.skips("dce"));
  EXPECT_FALSE(options.skips("c"));
}

}  // namespace
}  // namespace fxjit
