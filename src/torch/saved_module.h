// Modules and codec of saved files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "fxjit/fx/text.h"
#include "fxjit/torch/file.h"

namespace fxjit::inline v0::torch_ {

inline constexpr std::string_view kFileKind = "fxjit.GraphModule";
inline constexpr int64_t kFileVersion = 1, kFileVersionWithGuards = 2;

// A module of a file: its attributes, and the rest of what the file says of it, which is written back.
class SavedModule final : public fx::BasicModule {
 public:
  // `entry` is the Dict of the file.
  explicit SavedModule(fx::Value entry);
  const fx::Value& entry() const { return entry_; }
  bool training() const { return training_; }
  // An attribute that is neither tensor nor module; None where there is none.
  fx::Value plain(std::string_view name) const;
  // By class; NotImplementedError for classes that are more than an operator.
  fx::Value call(std::span<const fx::Value> args, const fx::Value& kwargs) override;

 private:
  fx::Value entry_;
  bool training_;
};

// The Dict's value of a Str key; ValueError where it is missing or of another kind.
const fx::Value& entry_at(const fx::Value& dict, std::string_view key, fx::ArgumentKind kind);

class FileCodec final : public fx::TextCodec {
 public:
  explicit FileCodec(const FileGlobals* globals = nullptr) : globals_(globals) {}
  std::optional<fx::ObjectText> encode(const fx::Object& object) override;
  fx::Argument decode(const fx::ObjectText& text) override;
  fx::CallableRef find(std::string_view name) override;

  int64_t number_of(const fx::Object& tensor);
  std::vector<fx::ObjectRef> tensors;

 private:
  const FileGlobals* globals_;
  std::unordered_map<const void*, int64_t> numbers_;  // by identity
};

}  // namespace fxjit::inline v0::torch_
