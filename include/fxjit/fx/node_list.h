// The nodes of a graph as a range.
#pragma once

#include <cstddef>

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

// Nodes in program order. Nodes may be inserted and erased while iterating; erased ones are skipped.
class NodeList {
 public:
  class iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    explicit iterator(Node* node = nullptr, bool reversed = false) : node_(node), reversed_(reversed) {}
    Node* operator*() const { return node_; }
    iterator& operator++() {
      do node_ = reversed_ ? node_->prev() : node_->next();
      while (node_->erased());
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const iterator& o) const { return node_ == o.node_; }

   private:
    Node* node_;
    bool reversed_;
  };

  NodeList(Node* root, size_t size, bool reversed) : root_(root), size_(size), reversed_(reversed) {}
  iterator begin() const { return ++iterator(root_, reversed_); }
  iterator end() const { return iterator(root_, reversed_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  NodeList reversed() const { return NodeList(root_, size_, !reversed_); }

 private:
  Node* root_;
  size_t size_;
  bool reversed_;
};

}  // namespace fxjit::inline v0::fx
