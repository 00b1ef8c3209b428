// Ranges over the edges of a node. Included by node.h.
#pragma once

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

// The users of a node. Do not change uses while iterating: take users_vector() first.
class UserRange {
 public:
  class iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    explicit iterator(const Use* use = nullptr) : use_(use) {}
    Node* operator*() const { return use_->user; }
    iterator& operator++() {
      use_ = use_->next;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const iterator&) const = default;

   private:
    const Use* use_;
  };

  explicit UserRange(const Node& n) : node_(&n) {}
  iterator begin() const { return iterator(node_->first_user_); }
  iterator end() const { return iterator(); }
  size_t size() const { return node_->num_users_; }
  bool empty() const { return node_->num_users_ == 0; }
  Node* front() const { return node_->first_user_->user; }

 private:
  const Node* node_;
};

// The distinct inputs of a node.
class InputRange {
 public:
  class iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    explicit iterator(const Use* use = nullptr) : use_(use) {}
    Node* operator*() const { return use_->producer; }
    iterator& operator++() {
      ++use_;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++use_;
      return old;
    }
    bool operator==(const iterator&) const = default;

   private:
    const Use* use_;
  };

  explicit InputRange(const Node& n) : node_(&n) {}
  iterator begin() const { return iterator(node_->inputs_); }
  iterator end() const { return iterator(node_->inputs_ + node_->num_inputs_); }
  size_t size() const { return node_->num_inputs_; }
  bool empty() const { return node_->num_inputs_ == 0; }
  Node* operator[](size_t i) const { return node_->inputs_[i].producer; }

 private:
  const Node* node_;
};

inline UserRange Node::users() const { return UserRange(*this); }
inline InputRange Node::all_input_nodes() const { return InputRange(*this); }

}  // namespace fxjit::inline v0::fx
