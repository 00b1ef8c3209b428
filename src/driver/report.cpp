#include "driver/report.h"

#include <cstdio>

#include "support/format.h"

namespace fxjit::inline v0::driver {
namespace {

std::string number(double v, const char* format = "%.2f") {
  char text[32];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

void print_calls(std::string& out, const char* title, const std::vector<CallReport>& calls) {
  if (calls.empty()) return;
  out += std::string("    ") + title + ":\n";
  for (const CallReport& c : calls)
    out +=
        "      " + (c.node.empty() ? "" : c.node + ": ") + c.target + (c.reason.empty() ? "" : ": " + c.reason) + "\n";
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return std::to_string(bytes) + " B";
  if (bytes < 10'000'000) return number(static_cast<double>(bytes) / 1e3, "%.1f") + " kB";
  return number(static_cast<double>(bytes) / 1e6, "%.1f") + " MB";
}

void print_specialisation(std::string& out, const SpecialisationReport& s, size_t index) {
  out += "  specialisation " + std::to_string(index) + ": " + s.inputs + "; " + std::to_string(s.hits) + " calls\n";
  for (const std::string& g : s.guards) out += "    guard: " + g + "\n";
  if (!s.kernels.empty()) out += "    kernels:\n";
  for (const KernelReport& k : s.kernels) {
    out += "      " + k.name + ": " + support::join(k.sources, ", ") + "; " + bytes_text(k.bytes) + "; ";
    out += k.cached ? "from the kernel cache\n" : number(k.milliseconds) + (k.from_disk ? " ms, from disk\n" : " ms\n");
  }
  print_calls(out, "library calls", s.library_calls);
  print_calls(out, "ATen calls", s.aten_calls);
  for (const std::string& n : s.notes) out += "    note: " + n + "\n";
  double total = 0;
  std::vector<std::string> stages;
  for (const StageReport& t : s.stages) {
    total += t.milliseconds;
    stages.push_back(t.stage + " " + number(t.milliseconds));
  }
  out += "    compiled in " + number(total) + " ms: " + support::join(stages, ", ") + "\n";
}

}  // namespace

std::string to_string(const Report& report) {
  std::string out = "capture: " + report.capture + "\n";
  for (const std::string& n : report.notes) out += "  note: " + n + "\n";
  out += "calls: " + std::to_string(report.recorded_calls) + " recorded, " + std::to_string(report.generic_calls) +
         " in the generic form or eager\n";
  out += "specialisations: " + std::to_string(report.specialisations.size()) + "\n";
  for (size_t i = 0; i < report.specialisations.size(); ++i) print_specialisation(out, report.specialisations[i], i);
  if (!report.fallbacks.empty()) {
    out += "fallbacks:\n";
    for (const CallReport& f : report.fallbacks)
      out += "  " + (f.node.empty() ? "" : f.node + ": ") + f.target + ": " + f.reason + "\n";
  }
  return out;
}

}  // namespace fxjit::inline v0::driver
