// That messages stay short without losing what tells most.
#include <string>
#include <vector>

#include "check.hpp"
#include "ringlet/collectives/group/control.hpp"
#include "ringlet/collectives/group/message_text.hpp"

namespace {

using namespace ringlet;
using collectives::ranks_and_texts;
using collectives::ranks_text;
using stress::check;

void ranks_are_named_by_runs() {
  check(ranks_text(std::vector{3}) == "rank 3", "one rank");
  check(ranks_text(std::vector{0, 2, 3, 4, 5, 9, 10}) == "ranks 0, 2 to 5, 9, 10", "runs");
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  check(ranks_text(odd) == "ranks 1, 3, 5, 7, 9, 11, 13, 15 and 42 more", "very many runs");
}

void few_ranks_have_a_line_each() {
  check(ranks_and_texts({"a", "a"}) == "\n  rank 0: a\n  rank 1: a", "a line for each");
}

void many_ranks_that_do_the_same_have_one_line() {
  std::vector<std::string> texts(300, "barrier()");
  texts[200] = "split()";
  check(ranks_and_texts(texts) == "\n  ranks 0 to 199, 201 to 299: barrier()\n  rank 200: split()",
        "the odd one shows");
}

void of_very_many_different_things_the_middle_is_left_out() {
  std::vector<std::string> texts;
  for (int rank = 0; rank < 53; ++rank) texts.push_back("call " + std::to_string(rank) + std::string(5000, 'x'));
  const std::string lines = ranks_and_texts(texts);
  check(lines.find("rank 11: call 11x") != std::string::npos && lines.find("rank 52: call 52x") != std::string::npos,
        "the first and the last are there");
  check(lines.find("\n  and 37 more\n") != std::string::npos, "and how many are not");
  check(lines.size() < 3832, "it fits where other processes read it");
}

void a_text_that_is_too_long_keeps_its_ends() {
  collectives::FixedText<40> text;
  text.set("short");
  check(text.get() == "short", "what fits stays as it is");
  text.set("first cause " + std::string(100, '.') + " last words");
  check(text.get() == "first cause .......... [...]  last words", "the middle is left out: " + text.get());
  for (std::size_t size = 39; size < 60; ++size) {
    std::string wide(size % 3, 'a');
    for (std::size_t i = 0; i < size; ++i) wide += "\u20ac";
    text.set(wide);
    std::size_t at = 0;
    const std::string cut = text.get();
    while (at < cut.size()) at += (cut[at] & 0x80) == 0 ? 1 : 3;
    check(cut.size() <= 40 && at == cut.size(), "no character is cut");
  }
}

}  // namespace

int main() {
  ranks_are_named_by_runs();
  few_ranks_have_a_line_each();
  many_ranks_that_do_the_same_have_one_line();
  of_very_many_different_things_the_middle_is_left_out();
  a_text_that_is_too_long_keeps_its_ends();
}
