#include "support/dump.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "support/errors.h"
#include "support/format.h"
#include "support/log.h"

namespace fxjit::inline v0::support {

namespace {

struct StageName {
  std::string_view name, extension;
};
constexpr std::array<StageName, 5> kStages{
    {{"graph", "graph"}, {"kernel", "kernel"}, {"llvm", "ll"}, {"asm", "s"}, {"ptx", "ptx"}}};

// Numbers the files of one process, so that they sort by time.
unsigned next_number() {
  static std::atomic<unsigned> number{0};
  return number.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Dump::Dump(std::string_view option) {
  const size_t colon = option.find(':');
  if (colon != option.npos) directory_ = option.substr(colon + 1);
  for (std::string_view stage : split(option.substr(0, colon), ',')) {
    size_t i = 0;
    while (i < kStages.size() && kStages[i].name != stage) ++i;
    if (i == kStages.size()) {
      throw ValueError(
          concat("option 'dump' got the stage '", stage, "'; the stages are graph, kernel, llvm, asm, ptx"));
    }
    stages_ |= 1u << i;
  }
}

void Dump::write(DumpStage stage, std::string_view name, std::string_view text) const {
  const StageName& s = kStages[static_cast<size_t>(stage)];
  if (directory_.empty()) {
    const std::string whole = concat("=== ", s.name, ": ", name, "\n", text, text.ends_with('\n') ? "" : "\n");
    std::fwrite(whole.data(), 1, whole.size(), stderr);
    return;
  }
  std::string file = std::to_string(next_number());
  file.insert(0, file.size() < 4 ? 4 - file.size() : 0, '0');
  file += "-";
  for (char c : name) file.push_back(c == '/' || c == '.' || c == '\0' ? '_' : c);
  const std::filesystem::path path = std::filesystem::path(directory_) / concat(file, ".", s.extension);
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) warn("FXJIT_DUMP: cannot write " + path.string());
}

}  // namespace fxjit::inline v0::support
