#include "passes/functionalize.h"

#include <algorithm>
#include <unordered_map>

#include "kernel/lower/lower.h"
#include "ops/shape.h"
#include "passes/alias.h"
#include "passes/typed_builder.h"
#include "support/errors.h"

namespace fxjit::inline v0::passes {
namespace {

using fx::Argument;
using fx::Node;

bool is_memory_of_caller(const Node& n) { return n.op() == fx::Opcode::Placeholder || n.op() == fx::Opcode::GetAttr; }

bool same_sizes(ShapeEnv& env, const TensorType& a, const TensorType& b) {
  if (a.rank() != b.rank()) return false;
  for (size_t d = 0; d < a.rank(); ++d)
    if (!env.guard_eq(a.sizes[d], b.sizes[d])) return false;
  return true;
}

// Equal as far as a program can tell: the stride of a dimension of one element is any.
bool same_layout(ShapeEnv& env, const TensorType& a, const TensorType& b) {
  for (size_t d = 0; d < a.rank(); ++d)
    if (!env.is_const(a.sizes[d], 1) && !env.guard_eq(a.strides[d], b.strides[d])) return false;
  return true;
}

class Functionalizer {
 public:
  explicit Functionalizer(PassContext& context)
      : graph_(*context.graph), env_(context.env), build_(graph_, env_), groups_(graph_) {}

  Result<bool> run();

 private:
  Result<void> rewrite(Node* n);
  Result<void> check_memory(const Node* n, const Node* self);
  Result<Node*> pure_call(Node* n, Node* self, const TensorTypePtr& self_type);
  Result<Node*> copied(Node* n, Node* source, const TensorType& self_type);
  Result<void> write_back();
  Result<void> rewrite_output();
  bool shares_written(const Node& n) const;
  Result<Node*> view_of_memory(Node* n);

  // The tensor object that a node is: an in-place call gives back its operand.
  Node* object_of(Node* n) const {
    auto it = object_.find(n);
    return it == object_.end() ? n : it->second;
  }
  // What an object holds at this point of the program.
  Node* value_of(Node* object) const {
    auto it = value_.find(object);
    return it == value_.end() ? object : it->second;
  }
  bool mutated(Node* object) const { return value_.contains(object); }

  fx::Graph& graph_;
  ShapeEnv& env_;
  TypedBuilder build_;
  MemoryGroups groups_;
  std::unordered_map<Node*, Node*> original_self_;  // the first operand as it was recorded
  std::unordered_map<Node*, Node*> object_;
  std::unordered_map<Node*, Node*> value_;
  std::vector<Node*> written_;   // objects of the caller, in the order of their first write
  std::vector<Node*> in_place_;  // to be erased
  Node* first_write_ = nullptr;  // to memory of the caller
};

Failure cannot(const Node* n, const std::string& why) {
  return Failure{std::string(schema_of(*n)) + " at %" + std::string(n->name()) + ": " + why};
}

// Nothing else may see this write before its delayed copy: a view of the caller's memory that only the caller gets is
// a view of that memory, whenever it is made; anything else that lives on would read old data.
Result<void> Functionalizer::check_memory(const Node* n, const Node* self) {
  for (Node* other : groups_.members(*self)) {
    // What is made later is made of the new value.
    if (object_of(other) == self || *n < *other) continue;
    if (is_memory_of_caller(*other))
      return cannot(n, "its operand may share memory with input " + std::string(other->name()));
    for (Node* user : other->users()) {
      if (*user < *n || user == n) continue;
      bool only_returned =
          user->op() == fx::Opcode::Output && is_memory_of_caller(*self) && is_sure_view(schema_of(*other));
      if (!only_returned)
        return cannot(n, "%" + std::string(other->name()) + " may share the memory and is used later");
    }
  }
  return {};
}

// aten::copy_(self, source): the source as self's type, in memory of its own.
Result<Node*> Functionalizer::copied(Node* n, Node* source, const TensorType& self_type) {
  const TensorTypePtr& type = source->tensor_type();
  if (!type) return cannot(n, "the type of what it copies is unknown");
  if (type->sizes != self_type.sizes) {
    std::vector<Argument> sizes;
    for (Dim d : self_type.sizes) {
      if (!env_.is_const(d)) return cannot(n, "it broadcasts to a size that varies");
      sizes.emplace_back(env_.hint(d));
    }
    Result<Node*> wide = build_.try_call("aten::expand", {source, Argument::list(sizes), false});
    if (!wide) return wide.failure();
    source = *wide;
  }
  return build_.try_call("aten::to.dtype", {source, self_type.dtype, false, true, Argument()});
}

Result<Node*> Functionalizer::pure_call(Node* n, Node* self, const TensorTypePtr& self_type) {
  std::string_view schema = schema_of(*n);
  if (schema == "aten::copy_") {
    if (Node* source = n->arg(1).node_or_null()) return copied(n, source, *self_type);
    return cannot(n, "it copies a number");
  }
  std::string form = functional_form(schema);
  std::vector<Argument> args(n->args().items().begin(), n->args().items().end());
  if (schema == "aten::zero_") {
    form = "aten::fill.Scalar";
    args.emplace_back(0);
  }
  if (form.empty()) return cannot(n, "this in-place operator has no pure form");
  args[0] = self;
  Result<Node*> pure = build_.try_call(form, args);
  if (!pure) {
    // Without a rule the pure form clones self, which keeps a dense layout.
    if (!ops::is_dense(env_, ops::layout_of(*self_type))) return cannot(n, "no rule for the type of " + form);
    return build_.call_as(form, args, self_type);
  }
  if ((*pure)->tensor_type()->dtype != self_type->dtype) return build_.cast(*pure, self_type->dtype);
  return pure;
}

Result<void> Functionalizer::rewrite(Node* n) {
  // Reads see what the objects hold now; the output is rewritten last.
  if (n->op() == fx::Opcode::Output) return {};
  std::vector<Node*> inputs;
  for (Node* input : n->all_input_nodes()) inputs.push_back(input);
  for (Node* input : inputs)
    if (Node* now = value_of(object_of(input)); now != input) n->replace_input_with(input, now);
  if (first_write_ && may_raise(*n))
    return cannot(n, "it may raise after %" + std::string(first_write_->name()) + " wrote to an input");
  if (effect_of(*n) != Effect::Write) return {};
  if (!is_inplace(schema_of(*n))) return cannot(n, "it writes its operands and has no pure form");

  Node* original = inputs.empty() ? nullptr : original_self_[n];
  if (!original || !original->tensor_type()) return cannot(n, "its operand is no tensor of known type");
  Node* self = object_of(original);
  if (auto ok = check_memory(n, self); !ok) return ok;
  const TensorTypePtr type = self->tensor_type();
  auto scope = graph_.inserting_before(n);
  build_.set_origin(n);
  Result<Node*> pure = pure_call(n, value_of(self), type);
  if (!pure) return pure.failure();
  if (first_write_ && may_raise(**pure)) return cannot(n, "it may raise after another write to an input");
  const TensorType& made = *(*pure)->tensor_type();
  if (!same_sizes(env_, made, *type)) return cannot(n, "its pure form has another size");
  if (!is_memory_of_caller(*self)) {
    if (!same_layout(env_, made, *type)) return cannot(n, "its pure form has other strides");
    // A kernel writes what it is told to; ATen makes the strides of its own, which show in dimensions of one element.
    if (made.strides != type->strides && !kernel::can_fuse(env_, *pure))
      return cannot(n, "its pure form, an ATen call, has other strides");
    auto kept = std::make_shared<TensorType>(made);
    kept->strides = type->strides;  // those of dimensions of one element show, too
    (*pure)->set_tensor_type(kept);
  }
  if (is_memory_of_caller(*self) && !mutated(self)) written_.push_back(self);
  if (is_memory_of_caller(*self) && !first_write_) first_write_ = n;
  value_[self] = *pure;
  in_place_.push_back(n);
  return {};
}

// copy_ into what the caller passed, in order. A source that shares memory with a written input is read first.
Result<void> Functionalizer::write_back() {
  Node* output = graph_.output_node();
  auto scope = graph_.inserting_before(output);
  build_.set_origin(nullptr);
  std::vector<Node*> sources;
  for (Node* object : written_) {
    Node* source = value_of(object);
    bool own = source->op() == fx::Opcode::CallFunction && sharing_of(*source) == Sharing::Fresh;
    sources.push_back(own ? source : build_.clone(source, object->tensor_type()->dtype));
  }
  for (size_t i = 0; i < written_.size(); ++i) {
    Node* copy = graph_.call_function(aten_target("aten::copy_", /*mutates=*/true),
                                      Argument::tuple({written_[i], sources[i], false}));
    copy->set_tensor_type(written_[i]->tensor_type());
  }
  return {};
}

// True for what was made, behind the first write, of memory that a written input may share.
bool Functionalizer::shares_written(const Node& n) const {
  if (!first_write_ || n < *first_write_) return false;
  for (Node* object : written_)
    if (std::ranges::count(groups_.members(n), object) > 0) return true;
  return false;
}

// A view that was taken of a written input behind the write, once more on the input's own memory.
Result<Node*> Functionalizer::view_of_memory(Node* n) {
  std::vector<Node*> chain;
  Node* at = n;
  while (at->op() == fx::Opcode::CallFunction && sharing_of(*at) == Sharing::View && at->arg(0).is_node()) {
    chain.push_back(at);
    at = original_self_.contains(at) ? object_of(original_self_[at]) : at->arg(0).as_node();
  }
  if (!is_memory_of_caller(*at) && shares_written(*n)) return cannot(n, "the caller may get a view of a written input");
  if (chain.empty() || !is_memory_of_caller(*at) || !mutated(at)) return n;
  Node* made = at;
  for (size_t i = chain.size(); i-- > 0;) {
    Node* view = chain[i];
    if (!is_sure_view(schema_of(*view))) return cannot(view, "the caller gets a view or a copy of a written input");
    std::vector<Argument> args(view->args().items().begin(), view->args().items().end());
    args[0] = made;
    Result<Node*> again = build_.try_call(schema_of(*view), args);
    if (!again) return again.failure();
    made = *again;
  }
  return made;
}

Result<void> Functionalizer::rewrite_output() {
  Node* output = graph_.output_node();
  auto scope = graph_.inserting_before(output);
  std::vector<Node*> inputs;
  for (Node* input : output->all_input_nodes()) inputs.push_back(input);
  for (Node* input : inputs) {
    Node* object = object_of(input);
    Node* returned = is_memory_of_caller(*object) ? object : value_of(object);
    if (object == input) {
      Result<Node*> view = view_of_memory(input);
      if (!view) return view.failure();
      if (*view != input) returned = *view;
    }
    if (returned != input) output->replace_input_with(input, returned);
  }
  return {};
}

Result<bool> Functionalizer::run() {
  std::vector<Node*> order;
  for (Node* n : graph_.nodes()) {
    order.push_back(n);
    // Which object a call works on is read before its operands are renamed.
    if (n->op() == fx::Opcode::CallFunction && n->args().size() > 0 && n->arg(0).is_node())
      original_self_[n] = n->arg(0).as_node();
    if (original_self_.contains(n) && is_inplace(schema_of(*n))) object_[n] = object_of(original_self_[n]);
  }
  for (Node* n : order)
    if (auto ok = rewrite(n); !ok) return ok.failure();
  if (value_.empty()) return false;
  if (auto ok = rewrite_output(); !ok) return ok.failure();
  if (auto ok = write_back(); !ok) return ok.failure();
  for (size_t i = in_place_.size(); i-- > 0;) graph_.erase_node(in_place_[i]);
  return true;
}

}  // namespace

Result<bool> functionalize(PassContext& context) {
  Result<bool> changed = Functionalizer(context).run();
  context.functional = changed.ok();
  return changed;
}

}  // namespace fxjit::inline v0::passes
