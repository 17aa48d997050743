// Text of a bounded length.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ringlet::collectives {

// Copies a text; if it is too long, its beginning and its end with a mark between them, cut between characters. Returns
// the number of bytes.
inline std::size_t shorten(std::string_view text, std::span<char> into) noexcept {
  constexpr std::string_view kMark = " [...] ";
  const auto is_inside = [&](std::size_t at) { return at < text.size() && (text[at] & 0xC0) == 0x80; };
  if (text.size() <= into.size()) {
    text.copy(into.data(), text.size());
    return text.size();
  }
  const std::size_t room = into.size() - std::min(into.size(), kMark.size());
  std::size_t head = room - room / 3;
  std::size_t tail = text.size() - room / 3;
  while (head > 0 && is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  char* end = std::copy_n(text.data(), head, into.data());
  if (room > 0) end = std::copy_n(kMark.data(), kMark.size(), end);
  end = std::copy_n(text.data() + tail, text.size() - tail, end);
  return static_cast<std::size_t>(end - into.data());
}

// Text with a single writer, which publishes it by another word.
template <std::size_t kCapacity>
class FixedText {
 public:
  void set(std::string_view text) noexcept { size_ = shorten(text, chars_); }
  std::string get() const { return {chars_.data(), size_ < kCapacity ? size_ : kCapacity}; }

 private:
  std::size_t size_ = 0;
  std::array<char, kCapacity> chars_;
};

}  // namespace ringlet::collectives
