#include <sstream>

#include "torch/convert.h"
#include "torch/import_record.h"

namespace fxjit::inline v0::torch_ {
namespace {

struct Obstacle {
  CallFlag flag;
  const char* text;
};

constexpr Obstacle kObstacles[] = {
    {kDataRead, "reads data of a tensor on the host"},
    {kDynamicShape, "has a result whose size depends on data"},
    {kMetadata, "changes the sizes, strides or storage of a tensor"},
    {kUnknownInput, "uses a tensor of unknown origin"},
    {kChangedInput, "uses a tensor whose metadata changed outside of the dispatcher"},
    {kOpaqueValue, "has an argument or result that is no plain value"},
};

void print(std::ostream& out, const RecordedArg& arg, const c10::Type* type) {
  switch (arg.kind) {
    case RecordedArg::Constant:
      out << (type ? to_value(arg.constant, *type) : to_value(arg.constant)).repr();
      break;
    case RecordedArg::Tensor:
      out << '%' << arg.value;
      break;
    case RecordedArg::List:
      out << '[';
      for (size_t i = 0; i < arg.items.size(); ++i) {
        if (i > 0) out << ", ";
        print(out, arg.items[i], nullptr);
      }
      out << ']';
      break;
  }
}

}  // namespace

std::string find_obstacle(const Recorder& recorder) {
  for (size_t i = 0; i < recorder.calls().size(); ++i) {
    const RecordedCall& call = recorder.calls()[i];
    for (const Obstacle& o : kObstacles) {
      if (!(call.flags & o.flag)) continue;
      std::string where = call.scope < 0 ? "" : ", scope " + std::to_string(call.scope);
      return call.name() + " (call " + std::to_string(i) + " of the record" + where + ") " + o.text;
    }
  }
  return "";
}

std::string print_record(const Recorder& recorder) {
  std::ostringstream out;
  for (const RecordedCall& call : recorder.calls()) {
    for (size_t i = 0; i < call.results.size(); ++i) {
      if (i > 0) out << ", ";
      print(out, call.results[i], nullptr);
    }
    out << (call.results.empty() ? "" : " = ") << call.name() << '(';
    const auto& schema = call.op.schema().arguments();
    for (size_t i = 0; i < call.args.size(); ++i) {
      if (i > 0) out << ", ";
      print(out, call.args[i], schema[i].real_type().get());
    }
    out << ')';
    if (call.scope >= 0) out << "  # scope " << call.scope;
    out << '\n';
  }
  return out.str();
}

}  // namespace fxjit::inline v0::torch_
