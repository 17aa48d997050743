#include "rank_timer.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>

#include "names.hpp"

namespace ringlet::bench {
namespace {

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace

Variant variant_named(const std::string& name) {
  return named<Variant>({{"in_place", Variant::kInPlace}, {"out", Variant::kOut}, {"shared", Variant::kShared}}, name);
}

std::string Timing::as_json() const {
  std::ostringstream out;
  out.precision(9);
  out << "\"seconds\": " << seconds << ", \"calls\": " << calls << ", \"faults_per_call\": " << faults_per_call
      << ", \"slowest_call\": " << slowest_call;
  return out.str();
}

RankTimer::RankTimer(Subject& subject, const Schedule& schedule)
    : subject_(subject),
      schedule_(schedule),
      group_(schedule.num_ranks),
      line_(static_cast<std::size_t>(schedule.num_ranks)),
      seconds_(static_cast<std::size_t>(schedule.num_ranks)) {}

Timing RankTimer::measure() {
  std::vector<int> cores;
  const std::vector<int> usable = usable_cores();
  for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
    cores.push_back(usable[static_cast<std::size_t>(rank) % usable.size()]);
  }
  on_cores(cores, [&](std::size_t rank) { run_or_exit(static_cast<int>(rank)); });
  if (is_wrong_.load()) throw WrongAnswer("the result differs from the reference");
  return timing_;
}

// Ranks that wait for one that failed would wait for ever, so a failure ends the program.
void RankTimer::run_or_exit(int rank) {
  try {
    run(rank);
  } catch (const std::exception& error) {
    std::cerr << "rank " << rank << ": " << error.what() << std::endl;
    std::_Exit(2);
  }
}

void RankTimer::run(int rank) {
  collectives::Member member = group_.member(rank);
  verify(member);
  subject_.clear(rank);
  while (region(member) < schedule_.region_seconds / 2) {
    line_.wait();
    if (rank == 0) calls_ *= 2;
    line_.wait();
  }
  line_.wait();
  const long faults = page_faults();
  const double seconds = region(member);
  if (rank == 0) {
    const auto calls = static_cast<double>(calls_);
    timing_ = {seconds / calls, calls_, static_cast<double>(page_faults() - faults) / calls, 0.0};
  }
  find_slowest(member);
  verify(member);
}

void RankTimer::verify(collectives::Member& member) {
  const int rank = member.rank();
  line_.wait();
  subject_.fill(rank);
  line_.wait();
  const collectives::Results results = subject_.call(member);
  std::byte* const output = subject_.output_of(rank);
  const std::byte* const result = output != nullptr ? output : results.empty() ? nullptr : results.front()->data();
  if (!subject_.is_right(rank, result)) is_wrong_.store(true);
  if (output != nullptr) {
    // A comparison that lets everything pass would make every time worthless: it must refuse one changed bit.
    output[0] ^= std::byte{1};
    if (subject_.is_right(rank, output)) throw std::logic_error("the comparison accepts a wrong answer");
    output[0] ^= std::byte{1};
  }
  line_.wait();
}

// Seconds of calls_ calls, of the slowest rank. A rank may begin a call while another still holds the result of the one
// before, so a steady state has two results; holding one while the next is made brings both about.
double RankTimer::region(collectives::Member& member) {
  line_.wait();
  {
    const collectives::Results held = subject_.call(member);
    subject_.call(member);
  }
  line_.wait();
  const double start = seconds_now();
  for (std::size_t i = 0; i < calls_; ++i) subject_.call(member);
  seconds_[static_cast<std::size_t>(member.rank())] = seconds_now() - start;
  line_.wait();
  return *std::max_element(seconds_.begin(), seconds_.end());
}

void RankTimer::find_slowest(collectives::Member& member) {
  double& slowest = seconds_[static_cast<std::size_t>(member.rank())];
  line_.wait();
  slowest = 0.0;
  for (std::size_t i = 0; i < schedule_.tail_calls; ++i) {
    const double start = seconds_now();
    subject_.call(member);
    slowest = std::max(slowest, seconds_now() - start);
  }
  line_.wait();
  if (member.rank() == 0) timing_.slowest_call = *std::max_element(seconds_.begin(), seconds_.end());
  line_.wait();
}

int run_main(int argc, char** argv, std::map<std::string, std::string> defaults, void (*run)(const Arguments&)) {
  try {
    run(Arguments(argc, argv, std::move(defaults)));
    return 0;
  } catch (const WrongAnswer& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 3;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 2;
  }
}

}  // namespace ringlet::bench
