#include "support/errors.h"

#include <gtest/gtest.h>

#include "support/result.h"

namespace fxjit {
namespace {

TEST(Errors, EachKindThrowsTheClassOfItsName) {
  EXPECT_THROW(throw_error(ErrorKind::Type, "m"), TypeError);
  EXPECT_THROW(throw_error(ErrorKind::Index, "m"), IndexError);
  EXPECT_THROW(throw_error(ErrorKind::Trace, "m"), TraceError);
  EXPECT_THROW(throw_error(ErrorKind::Trace, "m"), ValueError);             // as in torch.fx
  EXPECT_THROW(throw_error(ErrorKind::NotImplemented, "m"), RuntimeError);  // as in Python
  for (int k = 0; k <= static_cast<int>(ErrorKind::Internal); ++k) {
    const auto kind = static_cast<ErrorKind>(k);
    try {
      throw_error(kind, "text");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      EXPECT_STREQ(e.what(), "text");
    }
  }
}

TEST(Errors, ContextIsAppendedWithoutChangingTheClass) {
  const auto outer = [] {
    try {
      throw KeyError("missing");
    } catch (Error& e) {
      e.append(" in here");
      throw;
    }
  };
  try {
    outer();
    FAIL();
  } catch (const KeyError& e) {
    EXPECT_STREQ(e.what(), "missing in here");
  }
}

TEST(Errors, AFailedCheckSaysPlaceConditionAndHowToReport) {
  const int a = 2;
  try {
    FXJIT_CHECK(a == 1, "while adding ", "x", ' ', 7);
    FAIL();
  } catch (const InternalError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("errors_test.cpp:"), text.npos);
    EXPECT_NE(text.find("a == 1"), text.npos);
    EXPECT_NE(text.find("while adding x 7"), text.npos);
    EXPECT_NE(text.find("FXJIT_DUMP"), text.npos);
  }
}

TEST(Result, HoldsAValueOrTheReason) {
  const auto half = [](int v) -> Result<int> {
    if (v % 2) return Failure{"odd"};
    return v / 2;
  };
  EXPECT_EQ(*half(4), 2);
  EXPECT_FALSE(half(3));
  EXPECT_EQ(half(3).reason(), "odd");
  EXPECT_THROW((void)half(3).value(), InternalError);
  EXPECT_THROW((void)half(2).reason(), InternalError);
  const Result<void> done;
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(Result<void>(Failure{"no"}).reason(), "no");
}

}  // namespace
}  // namespace fxjit
