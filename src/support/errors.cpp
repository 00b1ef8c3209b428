#include "support/errors.h"

namespace fxjit::inline v0 {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Type:
      return "TypeError";
    case ErrorKind::Value:
      return "ValueError";
    case ErrorKind::Runtime:
      return "RuntimeError";
    case ErrorKind::Name:
      return "NameError";
    case ErrorKind::Index:
      return "IndexError";
    case ErrorKind::Key:
      return "KeyError";
    case ErrorKind::Attribute:
      return "AttributeError";
    case ErrorKind::NotImplemented:
      return "NotImplementedError";
    case ErrorKind::Trace:
      return "TraceError";
    case ErrorKind::Assertion:
      return "AssertionError";
    case ErrorKind::Internal:
      return "InternalError";
  }
  return "Error";
}

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(message), message_(message), kind_(kind) {}

// Here, so that each class has one vtable and one type_info, and can be caught across libraries.
Error::~Error() = default;
TypeError::~TypeError() = default;
ValueError::~ValueError() = default;
RuntimeError::~RuntimeError() = default;
NameError::~NameError() = default;
IndexError::~IndexError() = default;
KeyError::~KeyError() = default;
AttributeError::~AttributeError() = default;
NotImplementedError::~NotImplementedError() = default;
TraceError::~TraceError() = default;
AssertionError::~AssertionError() = default;
InternalError::~InternalError() = default;

void throw_error(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::Type:
      throw TypeError(message);
    case ErrorKind::Value:
      throw ValueError(message);
    case ErrorKind::Runtime:
      throw RuntimeError(message);
    case ErrorKind::Name:
      throw NameError(message);
    case ErrorKind::Index:
      throw IndexError(message);
    case ErrorKind::Key:
      throw KeyError(message);
    case ErrorKind::Attribute:
      throw AttributeError(message);
    case ErrorKind::NotImplemented:
      throw NotImplementedError(message);
    case ErrorKind::Trace:
      throw TraceError(message);
    case ErrorKind::Assertion:
      throw AssertionError(message);
    case ErrorKind::Internal:
      throw InternalError(message);
  }
  throw InternalError(message);
}

namespace support {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::string text = concat("internal error in fxjit at ", file, ":", line, ": ", condition, " does not hold");
  if (!message.empty()) text += concat(": ", message);
  text += "\nThis is a bug of fxjit. FXJIT_DUMP=graph,kernel,llvm:DIR saves what is needed to reproduce it.";
  throw InternalError(text);
}

}  // namespace support
}  // namespace fxjit::inline v0
