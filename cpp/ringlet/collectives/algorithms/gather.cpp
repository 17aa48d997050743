#include "ringlet/collectives/algorithms/gather.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// An array as rows, each with a number of bytes for every index along the axis.
struct AxisView {
  std::size_t num_rows = 1;
  std::size_t bytes = 1;

  AxisView(const Buffer& part, int axis) : bytes(core::size_of(part.dtype)) {
    const auto split = static_cast<std::size_t>(axis);
    for (std::size_t dim = 0; dim < split; ++dim) num_rows *= static_cast<std::size_t>(part.shape[dim]);
    for (std::size_t dim = split + 1; dim < part.shape.size(); ++dim)
      bytes *= static_cast<std::size_t>(part.shape[dim]);
  }
};

// Copies the pieces of all ranks to their places in the rows of the result.
class Gather {
 public:
  Gather(const Call& call, std::span<const std::int64_t> lengths)
      : view_(call.buffers.front(), call.axis),
        columns_(static_cast<int>(lengths.size()),
                 [&](std::size_t rank) { return static_cast<std::size_t>(lengths[rank]) * view_.bytes; }),
        inputs_(static_cast<int>(lengths.size()),
                [&](std::size_t rank) { return columns_.size(rank) * view_.num_rows; }) {}

  std::size_t total_bytes() const { return inputs_.total(); }
  std::size_t input_bytes(int rank) const { return inputs_.size(static_cast<std::size_t>(rank)); }
  std::size_t first_byte(int rank) const { return columns_.begin(static_cast<std::size_t>(rank)); }
  bool has_one_row() const { return view_.num_rows == 1; }

  // Copies a range of all inputs, laid end to end, to one result.
  void copy_range(Round& round, Range range, MappedBuffer result, kernels::Store store) const {
    inputs_.visit(range, [&](std::size_t rank, std::size_t begin, std::size_t size) {
      const std::size_t width = columns_.size(rank);
      for (const std::size_t end = begin + size; begin < end;) {
        const std::size_t row = begin / width;
        const std::size_t column = begin % width;
        const std::size_t run = view_.num_rows == 1 ? end - begin : std::min(width - column, end - begin);
        const MappedBuffer to = result + (row * columns_.total() + columns_.begin(rank) + column);
        round.copy(round.input(static_cast<int>(rank), 0) + begin, run, to, store);
        begin += run;
      }
    });
  }

 private:
  AxisView view_;
  Extents columns_;
  Extents inputs_;
};

int announcer_of(const Call& call) { return call.kind == Kind::kGather ? call.root : 0; }

bool has_output(Round& round, int rank) { return round.call_of(rank).has_outputs; }

// Before arriving: announces memory for the result, unless there is an output.
void announce_gather(Round& round, std::size_t bytes) {
  const Call& call = round.call();
  if (round.rank() != announcer_of(call) || call.has_outputs) return;
  round.announce_result(bytes, call.kind == Kind::kAllGather);
}

// The destinations of the gathered bytes.
std::span<const MappedBuffer> targets_of(Round& round) {
  const int announcer = announcer_of(round.call());
  auto& targets = round.mine().targets;
  targets.clear();
  if (!has_output(round, announcer)) {
    targets.push_back(round.mapped_result(announcer, 0));
  } else if (round.call().kind == Kind::kGather) {
    targets.push_back(round.output(announcer, 0));
  } else {
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      if (round.is_written(rank, 0)) targets.push_back(round.output(rank, 0));
    }
  }
  return targets;
}

void check_gather(Round& round, const Gather& gather) {
  const int announcer = announcer_of(round.call());
  if (!has_output(round, announcer)) return;
  OverlapCheck overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const bool is_receiver = round.call().kind == Kind::kAllGather || rank == announcer;
    const BufferName input = round.own_input_name(rank, 0);
    const BufferName output = is_receiver ? round.own_output_name(rank, 0) : BufferName();
    if (is_receiver) overlap.add_output(rank, output, gather.total_bytes());
    const bool is_in_place = is_receiver && gather.has_one_row() && input == output + gather.first_byte(rank);
    if (!is_in_place) overlap.add_input(rank, input, gather.input_bytes(rank));
  }
  overlap.check();
}

void gather_shared(Round& round, const Gather& gather) {
  check_gather(round, gather);
  const std::span<const MappedBuffer> targets = targets_of(round);
  const kernels::Store store = store_for(gather.total_bytes() * targets.size());
  round.process_chunks(Ranges(gather.total_bytes(), 1, round.num_ranks()), [&](Range range) {
    for (const MappedBuffer target : targets) gather.copy_range(round, range, target, store);
  });
}

Results take_gathered(Round& round) {
  const Call& call = round.call();
  const int announcer = announcer_of(call);
  const bool takes = call.kind == Kind::kAllGather || round.rank() == announcer;
  if (call.has_outputs || !takes) return {};
  return round.take_results(announcer);
}

// The description of a rank's piece in its slot.
struct Lengths {
  std::int64_t input;
  std::int64_t output;
};

Lengths said_by(Round& round, int rank) {
  Lengths lengths;
  std::memcpy(&lengths, round.payload_of(rank), sizeof lengths);
  return lengths;
}

void say_lengths(Round& round) {
  const Buffer& part = round.call().buffers.front();
  const Lengths lengths{part.shape[static_cast<std::size_t>(round.call().axis)], part.output_length};
  std::memcpy(round.slot_of(round.rank()).payload(), &lengths, sizeof lengths);
}

void check_outputs(Round& round, std::int64_t total) {
  const Call& call = round.call();
  const int announcer = announcer_of(call);
  if (!has_output(round, announcer)) return;
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (call.kind == Kind::kGather && rank != announcer) continue;
    check_output_length(round, rank, said_by(round, rank).output, total, "axis " + std::to_string(call.axis));
  }
}

}  // namespace

std::vector<std::int64_t> lengths_of(Round& round) {
  std::vector<std::int64_t> lengths;
  for (int rank = 0; rank < round.num_ranks(); ++rank) lengths.push_back(said_by(round, rank).input);
  return lengths;
}

bool gather_equal(Round& round, Results& results) {
  const Call& call = round.call();
  const std::int64_t length = call.buffers.front().shape[static_cast<std::size_t>(call.axis)];
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(round.num_ranks()), length);
  const Gather gather(call, lengths);
  announce_gather(round, gather.total_bytes());
  say_lengths(round);
  round.arrive_for_work();
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    if (said_by(round, rank).input == length) continue;
    round.call_off();  // all ranks determine this, so no rank accesses a buffer
    return false;
  }
  check_outputs(round, length * round.num_ranks());
  gather_shared(round, gather);
  results = take_gathered(round);
  return true;
}

Results gather_ragged(Round& round, std::span<const std::int64_t> lengths) {
  const Gather gather(round.call(), lengths);
  announce_gather(round, gather.total_bytes());
  say_lengths(round);
  round.arrive_for_work();
  check_outputs(round, std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  gather_shared(round, gather);
  return take_gathered(round);
}

}  // namespace ringlet::collectives
