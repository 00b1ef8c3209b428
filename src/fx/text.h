// What printer and parser of the text format share.
#pragma once

#include <optional>
#include <string_view>

#include "fxjit/fx/text.h"

namespace fxjit::inline v0::fx {

// Words are paths and targets that need no quotes: letters, digits and _ . : *
bool is_word_char(char c);
bool is_word(std::string_view s);
// Names of nodes that need no quotes: letters, digits and _; those of keyword arguments begin with no digit.
bool is_name_char(char c);
bool is_name(std::string_view s);
bool is_key(std::string_view s);

// What may stand behind a tensor type, in this order: the device where it is not the CPU, requires_grad, a Python
// number as tensor.
inline constexpr std::string_view kTypeMarks[] = {"cuda", "meta", "other", "grad", "number"};

// The length of a tensor type at the beginning of `s`: "f32[4, s0]", "f32[4, 8] (1, 4) grad"; 0 where there is none.
// Such annotations are strings to the graph and are written without quotes.
size_t tensor_type_length(std::string_view s);

// "torch.float32", "torch.strided", "torch.channels_last" as the constant.
std::optional<Argument> named_constant(std::string_view word);
std::optional<Device> parse_device(std::string_view name);

// The length of the UTF-8 sequence at the beginning of `s`; 0 where it is none.
size_t utf8_length(std::string_view s);

TextCodec& default_codec();

}  // namespace fxjit::inline v0::fx
