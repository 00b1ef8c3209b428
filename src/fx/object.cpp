#include "fxjit/fx/object.h"

#include <functional>

namespace fxjit::inline v0::fx {

ObjectVisitor::~ObjectVisitor() = default;
Object::~Object() = default;

size_t Object::hash() const { return std::hash<const void*>()(identity()); }

void Object::print(std::string& out) const { out += "<" + type_name() + ">"; }

}  // namespace fxjit::inline v0::fx
