// The index behind Graph::find_nodes, made at its first call.
#pragma once

#include <unordered_map>
#include <vector>

#include "fxjit/fx/node.h"

namespace fxjit::inline v0::fx {

class FindTable {
 public:
  void insert(Node* n, uint32_t& slot) {
    auto& bucket = buckets_[key(*n)];
    slot = static_cast<uint32_t>(bucket.size());
    bucket.push_back(n);
  }
  // Leaves a hole, so that the order of creation stays.
  void remove(Node* n, uint32_t slot) { buckets_[key(*n)][slot] = nullptr; }
  const std::vector<Node*>* find(Opcode op, const Argument& target) const {
    const auto it = buckets_.find(key(op, target));
    return it == buckets_.end() ? nullptr : &it->second;
  }

 private:
  struct Key {
    Opcode op;
    Argument target;  // of call_function; None for the others, which are told apart by name
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const { return k.target.hash() * 8 + static_cast<size_t>(k.op); }
  };
  static Key key(Opcode op, const Argument& target) { return {op, op == Opcode::CallFunction ? target : Argument()}; }
  static Key key(const Node& n) { return key(n.op(), n.target()); }

  std::unordered_map<Key, std::vector<Node*>, Hash> buckets_;
};

}  // namespace fxjit::inline v0::fx
