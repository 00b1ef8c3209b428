// What fxjit throws at its API boundary. One class per kind, so that Python gets the class that torch would raise.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fxjit/api.h"

namespace fxjit::inline v0 {

enum class ErrorKind : uint8_t {
  Type,
  Value,
  Runtime,
  Name,
  Index,
  Key,
  Attribute,
  NotImplemented,
  Trace,      // torch.fx's TraceError, a ValueError in Python
  Assertion,  // torch.fx asserts where the user misuses its API
  Internal,   // a bug of ours: place, condition, and what was being worked on
};

// The Python class of the kind: "TypeError", "TraceError", …
FXJIT_API std::string_view to_string(ErrorKind kind);

class FXJIT_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const noexcept { return message_; }

  // Adds context while the exception travels; `throw;` afterwards keeps the class.
  void append(std::string_view text) { message_.append(text); }

 private:
  std::string message_;
  ErrorKind kind_;
};

#define FXJIT_ERROR_CLASS(Class, Base, kind)                                       \
  class FXJIT_API Class : public Base {                                            \
   public:                                                                         \
    explicit Class(const std::string& message) : Base(ErrorKind::kind, message) {} \
    ~Class() override;                                                             \
                                                                                   \
   protected:                                                                      \
    Class(ErrorKind actual, const std::string& message) : Base(actual, message) {} \
  };

FXJIT_ERROR_CLASS(TypeError, Error, Type)
FXJIT_ERROR_CLASS(ValueError, Error, Value)
FXJIT_ERROR_CLASS(RuntimeError, Error, Runtime)
FXJIT_ERROR_CLASS(NameError, Error, Name)
FXJIT_ERROR_CLASS(IndexError, Error, Index)
FXJIT_ERROR_CLASS(KeyError, Error, Key)
FXJIT_ERROR_CLASS(AttributeError, Error, Attribute)
FXJIT_ERROR_CLASS(NotImplementedError, RuntimeError, NotImplemented)
FXJIT_ERROR_CLASS(TraceError, ValueError, Trace)
FXJIT_ERROR_CLASS(AssertionError, Error, Assertion)
FXJIT_ERROR_CLASS(InternalError, Error, Internal)

#undef FXJIT_ERROR_CLASS

// Throws the class that belongs to the kind.
[[noreturn]] FXJIT_API void throw_error(ErrorKind kind, const std::string& message);

}  // namespace fxjit::inline v0
