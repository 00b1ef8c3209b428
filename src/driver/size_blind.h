// Composite operators that hand on nothing of the sizes they see.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fxjit::inline v0::driver {

// True where the record of the composite's interior holds for other sizes: its integers are arguments of the composite
// or follow from ranks. Of all others (diff, cov, einsum …) a record holds for its sizes alone.
bool is_size_blind(std::string_view composite);

// The first of `composites` that is not; empty if there is none.
std::string first_that_bakes_sizes(const std::set<std::string>& composites);

}  // namespace fxjit::inline v0::driver
