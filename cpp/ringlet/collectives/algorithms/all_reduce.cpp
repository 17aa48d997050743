// Member::all_reduce: selection of the algorithm.
#include <string>

#include "ringlet/collectives/algorithms/direct.hpp"
#include "ringlet/collectives/algorithms/exchange.hpp"
#include "ringlet/collectives/algorithms/pieces.hpp"
#include "ringlet/collectives/algorithms/small.hpp"
#include "ringlet/collectives/algorithms/tuning.hpp"
#include "ringlet/collectives/call/round.hpp"
#include "ringlet/collectives/group/member.hpp"
#include "ringlet/collectives/group/or_abort.hpp"
#include "ringlet/collectives/transport/world.hpp"
#include "ringlet/core/error.hpp"

namespace ringlet::collectives {

namespace {

// One call of one rank.
struct Reduction {
  Group& group;
  int rank;
  std::span<const Buffer> buffers;
  core::Op op;
  Algorithm algorithm;
  sync::Poll* poll;
  bool continues = false;  // true in further rounds of a call

  const Call& begin(Round& round, std::span<const Buffer> some) const {
    Call& call = round.begin(Kind::kAllReduce);
    call.op = op;
    call.algorithm = algorithm;
    call.continues = continues;
    call.set_buffers(some);
    return call;
  }
};

Algorithm resolve(Algorithm wanted, const Call& call, int num_ranks) {
  if (wanted != Algorithm::kAuto) return wanted;
  const bool is_small = call.total_input_bytes() <= small_limit(num_ranks) && fits_slot(call);
  return is_small ? Algorithm::kSmall : Algorithm::kDirect;
}

void check_small(const Call& call) {
  if (fits_slot(call)) return;
  throw core::ArgumentError("algorithm SMALL carries at most " + std::to_string(sync::kSlotPayloadBytes) +
                            " bytes a rank, but " + call.describe() + " has " +
                            std::to_string(call.total_input_bytes()) + ". Use AUTO or DIRECT.");
}

Results reduce_whole(const Reduction& reduction) {
  Round round(reduction.group, reduction.rank, reduction.poll);
  const Call& call = reduction.begin(round, reduction.buffers);
  Results results;
  if (resolve(reduction.algorithm, call, round.num_ranks()) == Algorithm::kSmall) {
    check_small(call);
    results = small_all_reduce(round);
  } else if (is_to_be_exchanged(reduction.group, call)) {
    exchange_all_reduce(round, is_to_be_read_across(reduction.group, call));
  } else {
    results = direct_all_reduce(round);
  }
  round.finish();
  return results;
}

// All-reduce of private arrays in pieces, to outputs.
void reduce_pieces(const Reduction& reduction) {
  const bool by_exchange = exchanges(reduction.group);
  for_each_piece(reduction.buffers, reduction.op, by_exchange ? kExchangeBytes : kPieceBytes, [&](const Buffer& piece) {
    Round round(reduction.group, reduction.rank, reduction.poll);
    reduction.begin(round, {&piece, 1});
    if (by_exchange) {
      exchange_all_reduce(round, false);
    } else {
      direct_all_reduce(round);
    }
    round.finish();
  });
}

// If private arrays have two possible paths, rank 0 chooses one and measures the whole call.
enum : std::size_t { kAcross, kInPieces };

struct Choice {
  bool is_private = false;
  std::size_t way = kInPieces;
  std::size_t bytes = 0;
};

Choice choose(const Reduction& reduction, PathTuner& tuner, bool has_two_ways) {
  Round round(reduction.group, reduction.rank, reduction.poll);
  Choice choice;
  choice.bytes = reduction.begin(round, reduction.buffers).total_input_bytes();
  if (has_two_ways && reduction.rank == 0) round.announce_name(BufferName(tuner.next(choice.bytes)));
  choice.is_private = learn_memory(round);
  if (has_two_ways) choice.way = round.slot_of(0).result;
  round.finish();
  return choice;
}

}  // namespace

Results Member::all_reduce(std::span<const Buffer> buffers, core::Op op, Algorithm algorithm, sync::Poll* poll) {
  for (const Buffer& part : buffers) check_supported(op, part.dtype);
  Reduction reduction{*group_, rank_, buffers, op, algorithm, poll};
  if (!tells_memory(*group_, buffers, algorithm)) return reduce_whole(reduction);
  const bool has_two_ways = exchanges(*group_) && group_->world()->can_use_cma();
  const Choice choice = choose(reduction, state().path_tuner, has_two_ways);
  reduction.continues = true;
  const sync::Clock::time_point start = sync::Clock::now();
  Results results;
  or_abort(*group_, rank_, [&] {
    if (choice.is_private && choice.way == kInPieces) {
      reduce_pieces(reduction);
    } else {
      results = reduce_whole(reduction);
    }
  });
  if (choice.is_private && has_two_ways && rank_ == 0) {
    state().path_tuner.add(choice.bytes, sync::Clock::now() - start);
  }
  return results;
}

}  // namespace ringlet::collectives
