#include "ringlet/collectives/group/message_text.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>

#include "ringlet/collectives/group/fixed_text.hpp"

namespace ringlet::collectives {

namespace {

// Limits that make a message fit on a screen.
constexpr std::size_t kMostLines = 16;
constexpr std::size_t kMostRuns = 8;
constexpr std::size_t kLongestLine = 200;

std::string line_of(const std::string& ranks, const std::string& text) { return "\n  " + ranks + ": " + text; }

}  // namespace

std::string seconds_text(sync::Clock::duration duration) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g s", std::chrono::duration<double>(duration).count());
  return text.data();
}

std::string ranks_text(std::span<const int> ranks) {
  if (ranks.size() == 1) return "rank " + std::to_string(ranks.front());
  std::string text = "ranks ";
  std::size_t runs = 0;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (runs == kMostRuns) return text + " and " + std::to_string(ranks.size() - begin) + " more";
    text += (runs++ == 0 ? "" : ", ") + std::to_string(ranks[begin]);
    if (end - begin > 2) text += " to " + std::to_string(ranks[end - 1]);
    if (end - begin == 2) text += ", " + std::to_string(ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string ranks_and_texts(const std::vector<std::string>& texts) {
  std::string lines;
  if (texts.size() <= kMostLines) {
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      lines += line_of("rank " + std::to_string(rank), texts[rank]);
    return lines;
  }
  std::map<std::string_view, std::vector<int>> ranks_of;
  std::vector<std::string_view> different;  // in the order of the lowest ranks
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::vector<int>& ranks = ranks_of[texts[rank]];
    if (ranks.empty()) different.emplace_back(texts[rank]);
    ranks.push_back(static_cast<int>(rank));
  }
  constexpr std::size_t kFirst = kMostLines - 4;
  std::size_t left_out = 0;
  for (std::size_t index = 0; index < different.size(); ++index) {
    const std::vector<int>& ranks = ranks_of[different[index]];
    const bool is_shown = index < kFirst || different.size() - index <= kMostLines - kFirst;
    if (is_shown && left_out > 0) lines += "\n  and " + std::to_string(std::exchange(left_out, 0)) + " more";
    if (is_shown) {
      lines += line_of(ranks_text(ranks), shortened(different[index], kLongestLine));
    } else {
      left_out += ranks.size();
    }
  }
  return lines;
}

std::string shortened(std::string_view text, std::size_t most) {
  std::string short_text(std::min(text.size(), most), '\0');
  short_text.resize(shorten(text, short_text));
  return short_text;
}

}  // namespace ringlet::collectives
