// How the tools read their command lines and files.
#pragma once

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "fxjit/errors.h"

namespace fxjit::tools {

// "--name=value" in its parts; the name of a file, or - for standard input, is `file`.
struct CommandArgument {
  std::string_view file, option, value;

  explicit CommandArgument(std::string_view text) {
    if (text == "-" || !text.starts_with("-")) {
      file = text;
      return;
    }
    const size_t equals = std::min(text.find('='), text.size());
    option = text.substr(0, equals);
    value = text.substr(std::min(equals + 1, text.size()));
  }
};

// ValueError where it cannot be read.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  if (!in) throw ValueError("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace fxjit::tools
