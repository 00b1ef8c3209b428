// Wall-clock time of stages, for explain() and FXJIT_LOG.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fxjit::inline v0::support {

class Timer {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }
  void restart() { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Milliseconds by stage, in the order in which the stages first ended; a stage that runs twice is summed.
class StageTimes {
 public:
  void add(std::string_view stage, double milliseconds) {
    for (auto& [name, sum] : stages_) {
      if (name == stage) {
        sum += milliseconds;
        return;
      }
    }
    stages_.emplace_back(stage, milliseconds);
  }
  const std::vector<std::pair<std::string, double>>& stages() const { return stages_; }
  double total() const {
    double sum = 0;
    for (const auto& stage : stages_) sum += stage.second;
    return sum;
  }

  class Scope {
   public:
    Scope(StageTimes& times, std::string stage) : times_(times), stage_(std::move(stage)) {}
    ~Scope() { times_.add(stage_, timer_.milliseconds()); }
    Scope(const Scope&) = delete;

   private:
    StageTimes& times_;
    std::string stage_;
    Timer timer_;
  };
  [[nodiscard]] Scope scope(std::string stage) { return Scope(*this, std::move(stage)); }

 private:
  std::vector<std::pair<std::string, double>> stages_;
};

}  // namespace fxjit::inline v0::support
