// Order labels: integers that grow along the list, so that `a < b` is one comparison. A node inserted where no label is
// free makes its neighbourhood be spread anew. Ranges of growing size are tried until one is sparse enough, which keeps
// the cost of an insertion at O(log n) amortised (Bender, Cole, Demaine, Farach-Colton, Zito 2002, "Two simplified
// algorithms for maintaining order in a list", with T = 1.3).
#include <cmath>

#include "fxjit/fx/graph.h"

namespace fxjit::inline v0::fx {

namespace {
constexpr int kBits = 62;
constexpr int64_t kMiddle = int64_t{1} << (kBits - 1);
// Room for 20 halvings between neighbours that were appended, and for 2^41 appended nodes.
constexpr int64_t kStep = int64_t{1} << 20;
}  // namespace

void Graph::label(Node* n) {
  ++work_.order_labels;
  const bool first = n->prev_ == root_, last = n->next_ == root_;
  if (first && last) {
    n->order_ = kMiddle;
    return;
  }
  if (last && n->prev_->order_ < (int64_t{1} << kBits) - kStep) {
    n->order_ = n->prev_->order_ + kStep;
    return;
  }
  if (first && n->next_->order_ > kStep) {
    n->order_ = n->next_->order_ - kStep;
    return;
  }
  const int64_t low = first ? 0 : n->prev_->order_, high = last ? int64_t{1} << kBits : n->next_->order_;
  n->order_ = low + (high - low) / 2;
  if (n->order_ <= low) spread(n);
}

void Graph::spread(Node* n) {
  const int64_t base = n->prev_ == root_ ? n->next_->order_ : n->prev_->order_;
  Node *left = n, *right = n;  // the nodes of the range
  int64_t count = 1;
  for (int bits = 4; bits <= kBits; ++bits) {
    const int64_t size = int64_t{1} << bits, low = base & ~(size - 1), high = low + (size - 1);
    for (; left->prev_ != root_ && left->prev_->order_ >= low; ++count) left = left->prev_;
    for (; right->next_ != root_ && right->next_->order_ <= high; ++count) right = right->next_;
    if (bits<kBits&& static_cast<double>(count + 1)> static_cast<double>(size) * std::pow(1.3, -bits)) continue;
    const int64_t gap = size / (count + 1);
    int64_t label = low;
    for (Node* m = left;; m = m->next_) {
      m->order_ = label += gap;
      if (m == right) break;
    }
    work_.order_labels += static_cast<uint64_t>(count);
    return;
  }
}

}  // namespace fxjit::inline v0::fx
