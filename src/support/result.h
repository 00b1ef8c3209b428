// The outcome of what may well not work: a value, or the reason why not, which the driver keeps for explain().
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "support/errors.h"

namespace fxjit::inline v0::support {

struct Failure {
  std::string reason;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const std::string& reason() const {
    FXJIT_CHECK(!ok(), "a Result with a value was asked for its reason");
    return std::get<1>(state_).reason;
  }
  Failure failure() const { return Failure{reason()}; }

  T& value() & {
    check();
    return std::get<0>(state_);
  }
  const T& value() const& {
    check();
    return std::get<0>(state_);
  }
  T&& value() && {
    check();
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check() const { FXJIT_CHECK(ok(), "a failed Result was asked for its value: ", std::get<1>(state_).reason); }
  std::variant<T, Failure> state_;
};

// A Result without a value: `return {};` or `return Failure{"why"}`.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : failure_(std::move(failure)) {}  // NOLINT
  bool ok() const { return !failure_; }
  explicit operator bool() const { return ok(); }
  const std::string& reason() const {
    FXJIT_CHECK(!ok(), "a Result with a value was asked for its reason");
    return failure_->reason;
  }
  Failure failure() const { return Failure{reason()}; }

 private:
  std::optional<Failure> failure_;
};

}  // namespace fxjit::inline v0::support

namespace fxjit::inline v0 {
using support::Failure;
using support::Result;
}  // namespace fxjit::inline v0
