// Text of error messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ringlet/sync/wait.hpp"

namespace ringlet::collectives {

// Text such as "0.7 s".
std::string seconds_text(sync::Clock::duration duration);

// Text such as "rank 3" or "ranks 0, 2 to 5, 9", for ascending ranks. If there are very many ranges, the first ones and
// the number of further ranks.
std::string ranks_text(std::span<const int> ranks);

// One line for each rank's text. If there would be too many lines, one for all ranks with the same text; if there are
// still too many, the first and last ones and the number of omitted ranks.
std::string ranks_and_texts(const std::vector<std::string>& texts);

// Replaces the middle of a text that is too long by a mark.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace ringlet::collectives
