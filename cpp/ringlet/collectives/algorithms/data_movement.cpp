#include "ringlet/collectives/algorithms/data_movement.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "ringlet/collectives/call/bytes.hpp"
#include "ringlet/collectives/call/overlap.hpp"
#include "ringlet/kernels/kernels.hpp"

namespace ringlet::collectives {

namespace {

// Checks that each rank's output fits its rows of the root's array, whose shape only the root knew.
void check_pieces(Round& round) {
  const Call& root = round.call_of(round.call().root);
  const Buffer& whole = root.buffers.front();
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const Buffer& piece = round.call_of(rank).buffers.front();
    const bool fits = piece.dtype == whole.dtype && piece.shape.size() == whole.shape.size() &&
                      std::equal(piece.shape.begin() + 1, piece.shape.end(), whole.shape.begin() + 1);
    if (!fits) {
      round.refuse("out of rank " + std::to_string(rank) + " does not fit its rows of the root's array: pass an " +
                   "array of the root's dtype, whose shape differs in the first dimension only.");
    }
    check_output_length(round, rank, piece.output_length, root.numbers[static_cast<std::size_t>(rank)], "dimension 0");
  }
}

}  // namespace

Results scatter(Round& round) {
  const int root = round.call().root;
  const bool has_outputs = round.call().has_outputs;
  if (round.rank() == root && !has_outputs) {
    std::vector<std::size_t> sizes;
    const std::size_t row = row_bytes(round.call().buffers.front());
    for (const std::int64_t rows : round.call().numbers) sizes.push_back(static_cast<std::size_t>(rows) * row);
    round.announce_for_each(sizes);
  }
  round.arrive_for_work();
  const Call& call = round.call_of(root);
  const Buffer& part = call.buffers.front();
  const auto size_of = [&, row = row_bytes(part)](std::size_t rank) {
    return static_cast<std::size_t>(call.numbers[rank]) * row;
  };
  if (has_outputs) {
    check_pieces(round);
    OverlapCheck overlap(round);
    overlap.add_input(root, round.own_input_name(root, 0), part.input_bytes());
    for (int rank = 0; rank < round.num_ranks(); ++rank) {
      overlap.add_output(rank, round.own_output_name(rank, 0), size_of(static_cast<std::size_t>(rank)));
    }
    overlap.check();
  }
  Cursor cursor;
  const kernels::Store store = store_for(part.input_bytes());
  round.process_chunks(Ranges(part.input_bytes(), 1, round.num_ranks()), [&](Range range) {
    visit(range, cursor, size_of, [&](std::size_t piece, std::size_t begin, std::size_t size) {
      const MappedBuffer result =
          has_outputs ? round.output(static_cast<int>(piece), 0) : round.mapped_result(root, piece);
      round.copy(round.input(root, 0) + (cursor.begin + begin), size, result + begin, store);
    });
  });
  return has_outputs ? Results{} : round.take_results(root);
}

std::vector<std::int64_t> exchange_rows(Round& round) {
  round.arrive();
  std::vector<std::int64_t> rows;
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    const std::vector<std::int64_t>& sent = round.call_of(rank).numbers;
    rows.insert(rows.end(), sent.begin(), sent.end());
  }
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  for (std::size_t target = 0; target < num_ranks; ++target) {
    const Buffer& part = round.call_of(static_cast<int>(target)).buffers.front();
    std::int64_t received = 0;
    for (std::size_t source = 0; source < num_ranks; ++source) received += rows[source * num_ranks + target];
    if (round.call_of(static_cast<int>(target)).has_outputs) {
      check_output_length(round, static_cast<int>(target), part.output_length, received, "dimension 0");
    }
  }
  return rows;
}

namespace {

// The position of a piece of the data from `source` to `target` in both buffers.
struct Block {
  int source;
  int target;
  std::size_t input_offset;
  std::size_t output_offset;
};

void copy_block(Round& round, const Block& block, std::size_t size, kernels::Store store) {
  round.copy(round.input(block.source, 0) + block.input_offset, size,
             round.output(block.target, 0) + block.output_offset, store);
}

// Checks that the bytes `bytes_sent(rank)` and `bytes_received(rank)` of all ranks are disjoint.
template <class Sent, class Received>
void check_exchange(Round& round, Sent&& bytes_sent, Received&& bytes_received) {
  OverlapCheck overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    overlap.add_output(rank, round.own_output_name(rank, 0), bytes_received(static_cast<std::size_t>(rank)));
    overlap.add_input(rank, round.own_input_name(rank, 0), bytes_sent(static_cast<std::size_t>(rank)));
  }
  overlap.check();
}

void all_to_all_equal(Round& round) {
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t bytes = round.call().buffers.front().input_bytes();
  const std::size_t block = bytes / num_ranks;
  const std::size_t total = block * num_ranks * num_ranks;
  round.arrive_for_work();
  check_exchange(round, [&](std::size_t) { return bytes; }, [&](std::size_t) { return bytes; });
  // All blocks laid end to end, by target and then by source, which is their order in the results.
  round.process_chunks(Ranges(total, 1, round.num_ranks()), [&](Range range) {
    while (range.begin < range.end) {
      const std::size_t target = range.begin / bytes;
      const std::size_t source = range.begin % bytes / block;
      const std::size_t begin = range.begin % block;
      const std::size_t size = std::min(block - begin, range.end - range.begin);
      copy_block(round,
                 {static_cast<int>(source), static_cast<int>(target), target * block + begin, source * block + begin},
                 size, store_for(total));
      range.begin += size;
    }
  });
}

void all_to_all_ragged(Round& round, std::span<const std::int64_t> rows) {
  const auto num_ranks = static_cast<std::size_t>(round.num_ranks());
  const std::size_t row = row_bytes(round.call().buffers.front());
  const auto bytes_from_to = [&](std::size_t source, std::size_t target) {
    return static_cast<std::size_t>(rows[source * num_ranks + target]) * row;
  };
  const Extents blocks(static_cast<int>(num_ranks * num_ranks),
                       [&](std::size_t block) { return bytes_from_to(block % num_ranks, block / num_ranks); });
  std::vector<std::size_t> offsets(num_ranks * num_ranks);  // offsets in the source, [target * P + source]
  for (std::size_t source = 0; source < num_ranks; ++source) {
    std::size_t offset = 0;
    for (std::size_t target = 0; target < num_ranks; ++target) {
      offsets[target * num_ranks + source] = offset;
      offset += bytes_from_to(source, target);
    }
  }
  round.arrive_for_work();
  check_exchange(
      round,
      [&](std::size_t rank) {
        return offsets[(num_ranks - 1) * num_ranks + rank] + bytes_from_to(rank, num_ranks - 1);
      },
      [&](std::size_t rank) {
        const std::size_t last = rank * num_ranks + num_ranks - 1;
        return blocks.begin(last) + blocks.size(last) - blocks.begin(rank * num_ranks);
      });
  round.process_chunks(Ranges(blocks.total(), 1, round.num_ranks()), [&](Range range) {
    blocks.visit(range, [&](std::size_t block, std::size_t begin, std::size_t size) {
      const std::size_t target = block / num_ranks;
      const std::size_t place = blocks.begin(block) - blocks.begin(target * num_ranks) + begin;
      copy_block(round, {static_cast<int>(block % num_ranks), static_cast<int>(target), offsets[block] + begin, place},
                 size, store_for(blocks.total()));
    });
  });
}

}  // namespace

void all_to_all(Round& round, std::span<const std::int64_t> rows) {
  if (rows.empty()) {
    all_to_all_equal(round);
  } else {
    all_to_all_ragged(round, rows);
  }
}

void permute(Round& round) {
  const Call& call = round.call();
  const std::size_t bytes = call.buffers.front().input_bytes();
  constexpr int kNone = -1;
  std::vector<int> source_of(static_cast<std::size_t>(round.num_ranks()), kNone);
  for (std::size_t i = 0; i + 1 < call.numbers.size(); i += 2) {
    source_of[static_cast<std::size_t>(call.numbers[i + 1])] = static_cast<int>(call.numbers[i]);
  }
  const std::size_t total = bytes * source_of.size();
  round.arrive_for_work();
  OverlapCheck overlap(round);
  for (int rank = 0; rank < round.num_ranks(); ++rank) {
    overlap.add_output(rank, round.own_output_name(rank, 0), bytes);
    overlap.add_input(rank, round.own_input_name(rank, 0), bytes);
  }
  overlap.check();
  round.process_chunks(Ranges(total, 1, round.num_ranks()), [&](Range range) {
    while (range.begin < range.end) {
      const std::size_t target = range.begin / bytes;
      const std::size_t begin = range.begin % bytes;
      const std::size_t size = std::min(bytes - begin, range.end - range.begin);
      const MappedBuffer to = round.output(static_cast<int>(target), 0) + begin;
      if (source_of[target] == kNone) {
        if (round.may_write(to)) std::memset(to.here, 0, size);
      } else {
        round.copy(round.input(source_of[target], 0) + begin, size, to, store_for(total));
      }
      range.begin += size;
    }
  });
}

}  // namespace ringlet::collectives
