// Pieces of text that several printers share.
#pragma once

#include <string>

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

// str() of an argument in Python: nodes as name, strings bare, aggregates by repr().
std::string str(const Argument& a);
// The target as graphs show it: strings bare, functions by pretty_name.
std::string target_text(const Argument& target);
// "float " for an annotation, or nothing.
std::string annotation_text(const Argument& type);
// "{x: None, y: None}", as Python prints node.users.
std::string users_text(const Node& n);

}  // namespace fxjit::inline v0::fx
