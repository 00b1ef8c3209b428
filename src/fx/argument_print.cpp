// Arguments as torch.fx and Python print them.
#include <cmath>

#include "fx/printer.h"
#include "fxjit/fx/callable.h"
#include "fxjit/fx/node.h"
#include "support/format.h"

namespace fxjit::inline v0::fx {

using Kind = ArgumentKind;

namespace {

// str() or repr() of the parts: `_format_arg` of torch.fx uses str for the leaves of lists, tuples and dicts, and
// Python's own repr inside everything else.
enum class Style { Fx, Repr };

void print(std::string& out, const Argument& a, Style style);

void print_items(std::string& out, std::span<const Argument> items, Style style) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ", ";
    print(out, items[i], style);
  }
}

void print_named_tuple(std::string& out, const Argument& a) {
  const ObjectRef type = a.type_object();
  const auto* callable = dynamic_cast<const Callable*>(type.get());
  const auto signature = callable ? callable->signature() : std::nullopt;
  if (callable) {
    out += callable->base_name();
  } else {
    type->print(out);
  }
  out += "(";
  for (size_t i = 0; i < a.size(); ++i) {
    if (i) out += ", ";
    if (signature && i < signature->size()) out += (*signature)[i].name + "=";
    print(out, a[i], Style::Repr);
  }
  out += ")";
}

void print_device(std::string& out, Device d, Style style) {
  if (style == Style::Fx) {
    out += python_name(d);
    return;
  }
  out += "device(type='" + std::string(device_type_name(d.type)) + "'";
  if (d.index >= 0) out += ", index=" + std::to_string(d.index);
  out += ")";
}

void print_complex(std::string& out, std::complex<double> v) {
  const auto part = [](double d) {
    std::string text = support::python_float(d);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text;
  };
  const std::string imaginary = part(v.imag()) + "j";
  if (v.real() == 0 && !std::signbit(v.real())) {
    out += imaginary;
  } else {
    out += "(" + part(v.real()) + (imaginary[0] == '-' ? "" : "+") + imaginary + ")";
  }
}

void print_leaf(std::string& out, const Argument& a, Style style) {
  switch (a.kind()) {
    case Kind::None:
      out += "None";
      return;
    case Kind::Bool:
      out += a.as_bool() ? "True" : "False";
      return;
    case Kind::Int:
      out += std::to_string(a.as_int());
      return;
    case Kind::Float:
      out += support::python_float(a.as_float());
      return;
    case Kind::Complex:
      return print_complex(out, a.as_complex());
    case Kind::Str:
      out += style == Style::Fx ? std::string(a.as_str()) : support::python_repr(a.as_str());
      return;
    case Kind::DType:
      out += python_name(a.as_dtype());
      return;
    case Kind::Device:
      return print_device(out, a.as_device(), style);
    case Kind::Layout:
      out += python_name(a.as_layout());
      return;
    case Kind::MemoryFormat:
      out += python_name(a.as_memory_format());
      return;
    case Kind::Ellipsis:
      out += "Ellipsis";
      return;
    case Kind::Node:
      if (style == Style::Fx) out += "%";
      out += a.as_node()->name();
      return;
    case Kind::Object:
      return style == Style::Fx ? a.as_object().print(out) : a.as_object().print_repr(out);
    case Kind::List:
    case Kind::Tuple:
    case Kind::NamedTuple:
    case Kind::Dict:
    case Kind::Slice:
    case Kind::Range:
      return;
  }
}

void print_dict(std::string& out, const Argument& a, Style style) {
  out += "{";
  for (const DictEntry& e : a.entries()) {
    if (&e != a.entries().data()) out += ", ";
    print(out, e.key, style);
    out += ": ";
    print(out, e.value, style);
  }
  out += "}";
}

void print_tuple(std::string& out, const Argument& a, Style style) {
  out += "(";
  print_items(out, a.items(), style);
  out += a.size() == 1 ? ",)" : ")";
}

// range(3), range(0, 3, 2); slice always has three parts.
void print_call(std::string& out, std::string_view name, const Argument& a, size_t parts) {
  out += name;
  out += "(";
  print_items(out, a.items().subspan(0, parts), Style::Repr);
  out += ")";
}

void print(std::string& out, const Argument& a, Style style) {
  switch (a.kind()) {
    case Kind::List:
      out += "[";
      print_items(out, a.items(), style);
      out += "]";
      return;
    case Kind::Tuple:
      return print_tuple(out, a, style);
    case Kind::NamedTuple:
      return style == Style::Fx ? print_tuple(out, a, style) : print_named_tuple(out, a);
    case Kind::Dict:
      return print_dict(out, a, style);
    case Kind::Slice:
      return print_call(out, "slice", a, 3);
    case Kind::Range:
      return print_call(out, "range", a, a[2] == Argument(1) ? 2 : 3);
    case Kind::None:
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
    case Kind::DType:
    case Kind::Device:
    case Kind::Layout:
    case Kind::MemoryFormat:
    case Kind::Ellipsis:
    case Kind::Node:
    case Kind::Object:
    case Kind::Str:
    case Kind::Complex:
      return print_leaf(out, a, style);
  }
}

}  // namespace

std::string Argument::to_string() const {
  std::string out;
  print(out, *this, Style::Fx);
  return out;
}

std::string Argument::repr() const {
  std::string out;
  print(out, *this, Style::Repr);
  return out;
}

std::string str(const Argument& a) {
  if (a.is_aggregate()) return a.repr();
  std::string out;
  if (a.is_node()) {
    out += a.as_node()->name();
  } else {
    print_leaf(out, a, Style::Fx);
  }
  return out;
}

std::string Argument::type_name() const {
  switch (kind_) {
    case Kind::None:
      return "NoneType";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::Complex:
      return "complex";
    case Kind::Str:
      return "str";
    case Kind::DType:
      return "torch.dtype";
    case Kind::Device:
      return "torch.device";
    case Kind::Layout:
      return "torch.layout";
    case Kind::MemoryFormat:
      return "torch.memory_format";
    case Kind::Ellipsis:
      return "ellipsis";
    case Kind::Node:
      return "Node";
    case Kind::Object:
      return object_->type_name();
    case Kind::List:
      return "list";
    case Kind::Tuple:
    case Kind::NamedTuple:
      return "tuple";
    case Kind::Dict:
      return "dict";
    case Kind::Slice:
      return "slice";
    case Kind::Range:
      return "range";
  }
  return "?";
}

}  // namespace fxjit::inline v0::fx
