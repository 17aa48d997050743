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

// "0.7 s".
std::string seconds_text(sync::Clock::duration duration);

// "rank 3", "ranks 0, 2 to 5, 9"; of ascending ranks. Of very many that do not follow each other some, and how many
// more there are.
std::string ranks_text(std::span<const int> ranks);

// What ranks did, a line for each; where that would be long, one for all that did the same, and of very many different
// things the first and the last, and how many ranks are left out between them.
std::string ranks_and_texts(const std::vector<std::string>& texts);

// Replaces what does not fit, between the beginning and the end, by a mark.
std::string shortened(std::string_view text, std::size_t most);

}  // namespace ringlet::collectives
