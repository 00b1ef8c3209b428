// What explain() shows: plain data, made while compiling, printed by to_string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fxjit/api.h"

namespace fxjit::inline v0::driver {

struct KernelReport {
  std::string name;
  std::vector<std::string> sources;  // the nodes that were fused into it
  std::vector<int64_t> scopes;       // the program's nodes that it computes: indices into scope_names
  int64_t bytes = 0;                 // read and written once, at the sizes of the example call
  double milliseconds = 0;           // of code generation; 0 where this process had it
  bool cached = false;               // compiled for an earlier program of this process
  bool from_disk = false;            // compiled by an earlier process (option `cache`)
};

struct CallReport {
  std::string node;    // name in the graph
  std::string target;  // "aten::conv2d", "oneDNN linear"
  std::string reason;  // why it is a call and no kernel
  int64_t scope = -1;  // the program's node that it comes from: an index into scope_names
};

struct StageReport {
  std::string stage;
  double milliseconds = 0;
};

struct SpecialisationReport {
  std::string inputs;               // "x: f16[s0] (1)"
  std::vector<std::string> guards;  // what holds beside the inputs' types
  std::vector<KernelReport> kernels;
  std::vector<CallReport> library_calls;
  std::vector<CallReport> aten_calls;
  std::vector<StageReport> stages;  // in the order of the pipeline
  std::vector<std::string> notes;
  std::vector<std::string> scope_names;  // the program's nodes; a typed node comes from one of them
  int64_t hits = 0;
};

struct FXJIT_API Report {
  std::string capture;             // "checked FX trace", "by example", …
  std::vector<std::string> notes;  // why earlier ways did not do; what is guarded
  std::vector<SpecialisationReport> specialisations;
  std::vector<CallReport> fallbacks;  // calls that ran the generic form or eager, and why; each reason once
  int64_t generic_calls = 0;
  int64_t recorded_calls = 0;
};

FXJIT_API std::string to_string(const Report& report);

}  // namespace fxjit::inline v0::driver
