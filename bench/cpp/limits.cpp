// What this machine's memory, caches and scheduler can do at best: the yardstick of the benchmarks of collectives.
//
//   limits --measure update:1048576,copy:268435456,read:8388608,reduce4:1048576,spread2:65536 --threads 2 --latency 1
//
// Bandwidths are those of `threads` cores together (0: all that the process may use), each passing over a part of its
// own. The number behind the kind is the working set in bytes: everything that one pass reads or writes, an updated
// byte once. The bandwidth counts an updated byte twice. Every loop of every CPU target is tried (or those that --loops
// names, separated by commas) and the one with the best median is reported; "loops" lists all, best first.
// Prints JSON.

#include <cstring>
#include <exception>
#include <iostream>
#include <limits>

#include "latency.hpp"
#include "loops.hpp"
#include "team.hpp"
#include "text.hpp"

namespace ringlet::bench {
namespace {

struct Question {
  Kind kind;
  std::size_t num_sources;      // buffers that are read
  std::size_t num_targets;      // buffers that are written
  bool is_in_place = false;     // the first source is the target
  double moves_per_byte = 1.0;  // bytes moved by one byte of the working set

  // Of equal size; together the working set.
  std::size_t num_buffers() const { return num_sources + num_targets - (is_in_place ? 1 : 0); }
};

// The number behind the name of a kind; 0 if the name is another one.
std::size_t number_behind(const std::string& kind, const std::string& name) {
  if (!name.starts_with(kind) || name.size() == kind.size()) return 0;
  const std::size_t number = std::stoul(name.substr(kind.size()));
  return number <= kMaxBuffers ? number : 0;
}

// reduceP sums P buffers into another one, foldP into the first of them; spreadP copies one buffer into P others.
Question question_named(const std::string& name) {
  if (name == "update") return {Kind::kUpdate, 1, 1, true, 2.0};
  if (name == "copy") return {Kind::kCopy, 1, 1};
  if (name == "read") return {Kind::kRead, 1, 0};
  if (name == "write") return {Kind::kWrite, 0, 1};
  if (const std::size_t sources = number_behind("reduce", name); sources > 0) return {Kind::kReduce, sources, 1};
  if (const std::size_t targets = number_behind("spread", name); targets > 0) return {Kind::kSpread, 1, targets};
  if (const std::size_t sources = number_behind("fold", name); sources > 0) {
    return {Kind::kReduce, sources, 1, true, 1.0 + 1.0 / static_cast<double>(sources)};
  }
  throw std::invalid_argument("unknown kind '" + name +
                              "'; expected update, copy, read, write, or reduce, fold or spread with 1 to 8 behind it");
}

void copy_by_libc(const Part& part) { std::memcpy(part.into[0], part.from[0], part.count * sizeof(float)); }

// The C library chooses streaming stores by size: neither always nor never. Its memset is no candidate: processors fill
// lines with one byte faster than they can write what was computed.
constexpr Loop kLibraryLoops[] = {{Kind::kCopy, false, "memcpy", copy_by_libc}};

struct Candidate {
  std::string name;
  Loop loop;
  std::vector<double> seconds;  // of one pass, one entry per round
};

// Those of `kind` that this CPU can run; `wanted` names keep only themselves, none keeps all.
std::vector<Candidate> candidates_for(Kind kind, const std::vector<std::string>& wanted) {
  std::vector<Candidate> candidates;
  const auto append = [&](const std::string& target, std::span<const Loop> loops) {
    for (const Loop& loop : loops) {
      const std::string name = target + " " + std::string(loop.name);
      const bool is_wanted = wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
      if (loop.kind == kind && is_wanted) candidates.push_back({name, loop, {}});
    }
  };
  append("libc", kLibraryLoops);
  append("baseline", baseline_loops());
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) append("avx2", avx2_loops());
  if (__builtin_cpu_supports("avx512f")) append("avx512", avx512_loops());
#endif
  if (candidates.empty()) throw std::invalid_argument("none of the loops that --loops names is of the kind measured");
  return candidates;
}

// Buffers follow each other, each one page and three lines further than its size asks: equal offsets inside a page
// would make a load wait for the store to the other buffer, which is no limit of the memory.
class Workspace {
 public:
  Workspace(const Question& question, std::size_t working_set_bytes, std::size_t num_threads)
      : question_(question),
        num_threads_(num_threads),
        lines_(std::max(working_set_bytes / question.num_buffers() / kLine, num_threads)),
        stride_(lines_ * kLine + kSkew),
        pages_(stride_ * question.num_buffers()) {
    for (std::size_t i = 0; i < question.num_buffers(); ++i) buffers_.push_back(buffer(i));
  }

  // What `thread` works on: its contiguous run of lines in every buffer. `sources` and `targets` hold the pointers.
  Part part(std::size_t thread, std::vector<const float*>& sources, std::vector<float*>& targets) const {
    const std::size_t begin = lines_ * thread / num_threads_ * kFloatsPerLine;
    const std::size_t end = lines_ * (thread + 1) / num_threads_ * kFloatsPerLine;
    for (std::size_t i = 0; i < question_.num_sources; ++i) sources.push_back(buffers_[i] + begin);
    const std::size_t first = question_.is_in_place ? 0 : question_.num_sources;
    for (std::size_t i = 0; i < question_.num_targets; ++i) targets.push_back(buffers_[first + i] + begin);
    return {targets, sources, end - begin};
  }

  void touch(std::size_t thread) const {
    const std::size_t begin = lines_ * thread / num_threads_ * kLine;
    const std::size_t end = lines_ * (thread + 1) / num_threads_ * kLine;
    for (float* start : buffers_) std::memset(reinterpret_cast<std::byte*>(start) + begin, 0, end - begin);
  }

  double bytes_moved() const {
    return static_cast<double>(lines_ * kLine * question_.num_buffers()) * question_.moves_per_byte;
  }

 private:
  static constexpr std::size_t kSkew = 4096 + 3 * kLine;

  float* buffer(std::size_t index) const { return reinterpret_cast<float*>(pages_.data() + index * stride_); }

  Question question_;
  std::size_t num_threads_;
  std::size_t lines_;
  std::size_t stride_;
  Pages pages_;
  std::vector<float*> buffers_;
};

// Seconds of one pass by all threads: `passes` of them between two start lines, the slowest thread counts.
void time_candidate(Candidate& candidate, const Workspace& workspace, const std::vector<int>& cores, double least) {
  StartLine line(cores.size());
  std::vector<double> seconds(cores.size());
  std::size_t passes = 1;
  on_cores(cores, [&](std::size_t thread) {
    std::vector<const float*> sources;
    std::vector<float*> targets;
    const Part part = workspace.part(thread, sources, targets);
    const auto region = [&] {
      line.wait();
      const double start = seconds_now();
      for (std::size_t pass = 0; pass < passes; ++pass) candidate.loop.run(part);
      seconds[thread] = seconds_now() - start;
      line.wait();
      return *std::max_element(seconds.begin(), seconds.end());
    };
    // Warms up and finds how many passes fill the region; all threads see the same times, so they stop together.
    while (region() < least / 2 && passes < (std::size_t{1} << 30)) {
      line.wait();
      if (thread == 0) passes *= 2;
      line.wait();
    }
    line.wait();
    const double slowest = region();
    if (thread == 0) candidate.seconds.push_back(slowest / static_cast<double>(passes));
  });
}

std::string described(const Candidate& candidate, double bytes_moved) {
  std::ostringstream out;
  out.precision(9);
  out << "{\"loop\": " << quoted(candidate.name)
      << ", \"is_streaming\": " << (candidate.loop.is_streaming ? "true" : "false")
      << ", \"bytes_per_second\": " << bytes_moved / median(candidate.seconds)
      << ", \"seconds\": " << json_numbers(candidate.seconds) << '}';
  return out.str();
}

std::string bandwidth(const std::string& kind, std::size_t bytes, const std::vector<int>& cores,
                      const Arguments& arguments) {
  const Question question = question_named(kind);
  std::vector<Candidate> candidates = candidates_for(question.kind, arguments.words("loops"));
  const Workspace workspace(question, bytes, cores.size());
  on_cores(cores, [&](std::size_t thread) { workspace.touch(thread); });
  for (int round = 0; round < arguments.number("rounds"); ++round) {
    for (Candidate& candidate : candidates) {
      time_candidate(candidate, workspace, cores, arguments.number("milliseconds") / 1e3);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return median(a.seconds) < median(b.seconds); });
  std::string out = "{\"kind\": " + quoted(kind) + ", \"bytes\": " + std::to_string(bytes) + ", \"loops\": [";
  for (const Candidate& candidate : candidates) {
    if (&candidate != &candidates.front()) out += ",\n  ";
    out += described(candidate, workspace.bytes_moved());
  }
  return out + "]}";
}

void run(const Arguments& arguments) {
  std::vector<int> cores = usable_cores();
  const auto threads = static_cast<std::size_t>(arguments.number("threads"));
  if (threads > 0 && threads < cores.size()) cores.resize(threads);
  std::cout << "{\"cores\": " << usable_cores().size() << ", \"threads\": " << cores.size() << ", \"bandwidth\": [";
  bool is_first = true;
  for (const std::string& word : arguments.words("measure")) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) throw std::invalid_argument("'" + word + "' is not kind:bytes");
    std::cout << (is_first ? "" : ",\n ")
              << bandwidth(word.substr(0, colon), std::stoull(word.substr(colon + 1)), cores, arguments);
    is_first = false;
  }
  std::cout << ']';
  if (arguments.text("latency") == "1") {
    std::cout << ", \"latency\": " << latencies(usable_cores(), static_cast<int>(arguments.number("rounds")));
  }
  std::cout << "}\n";
}

}  // namespace
}  // namespace ringlet::bench

int main(int argc, char** argv) {
  try {
    ringlet::bench::run(ringlet::bench::Arguments(
        argc, argv,
        {{"measure", ""}, {"threads", "0"}, {"loops", ""}, {"rounds", "3"}, {"milliseconds", "5"}, {"latency", "0"}}));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "limits: " << error.what() << '\n';
    return 2;
  }
}
