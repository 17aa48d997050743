/* Shared memory of one process in a call: when its owner uses a block again.
 *
 * Process 0 owns a block for a result, which every rank may write while it works, and a block with staged data, which
 * every rank copies after the work. Stands for ProcessRefcount (process_refcount.hpp), lend, is_reclaimable and Hold
 * (holds.cpp), add_holds, take_results and let_go (results.cpp), and for Group::keep_memory, Group::retire and
 * CallReclaimPolicy (reclaim.cpp). work.pml shows that a rank which raises has not completed the call of another.
 *
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef N
#define N 3
#endif

bool is_for_all; /* announce_result: every rank takes the result, or process 0 alone, as in a gather */
bool goes;       /* the gate's decision */
bool gives_up;   /* ranks may raise before all work is done */

byte hold[3];    /* words of the result's block */
bool is_named, is_decided;
byte num_worked;
bool has_kept_results; /* the reclaim policy of the block waits for the ranks that have not left the call */
bool left_seq[3], over[3];
bool uses_result[3], uses_staged[3]; /* the process reads or writes the block, or is still going to */
bool is_reused_result, is_reused_staged;
bool is_killed, has_ended; /* process N - 1 */

#define TAKES(p) (is_for_all || p == 0)
#define ENDED(p) (p == N - 1 && has_ended)
#ifndef NO_END_OF_PROCESS
#define HAS_ENDED(p) ENDED(p)
#else
#define HAS_ENDED(p) false
#endif
#ifndef NO_HOLDS_OF_OTHERS
#define IS_FREE(p) (p >= N || hold[p] == 0 || HAS_ENDED(p))
#else
#define IS_FREE(p) (p > 0 || hold[p] == 0)
#endif
#define HAS_LEFT(p) (p == 0 || p >= N || left_seq[p] || over[p] || HAS_ENDED(p))
#define IS_PAST(p) (p == 0 || p >= N || over[p] || HAS_ENDED(p))
#define IS_RECLAIMABLE (IS_FREE(0) && IS_FREE(1) && IS_FREE(2))

#define WORK_IS_OVER (num_worked == N || gives_up || has_ended)

/* A live process that still uses the block loses it. A killed one is not gone before its end is known. */
#define ASSERT_UNUSED(uses) assert((ENDED(0) || !uses[0]) && (ENDED(1) || !uses[1]) && (N < 3 || ENDED(2) || !uses[2]))

proctype owner() {
  bool is_complete;
  hold[0] = 1; /* lend */
  d_step {
    hold[0]++;
    if :: is_for_all -> hold[1]++; hold[2] = hold[2] + (N > 2) :: else fi
  };
  is_named = true;
  is_decided;
  if
  :: !goes ->
#ifndef NO_RELEASE_OF_UNUSED
    d_step {
      hold[0]--;
      if :: is_for_all -> hold[1]--; hold[2] = hold[2] - (N > 2) :: else fi
    };
#endif
    hold[0]--
  :: else ->
    num_worked++;
    WORK_IS_OVER;
    is_complete = num_worked == N;
    left_seq[0] = true;
    if
    :: is_complete || (HAS_LEFT(1) && HAS_LEFT(2))
    :: else -> /* raise_after_leaving: a rank that stays may still write */
#ifndef NO_KEPT_RESULTS
      has_kept_results = true
#endif
    fi;
    hold[0]--; /* kept.clear() */
    hold[0]--  /* the result that the caller kept for some time, or that let_go took */
  fi;
  over[0] = true;
  /* SharedHeap::allocate */
  IS_RECLAIMABLE && (!has_kept_results || (HAS_LEFT(1) && HAS_LEFT(2)));
  ASSERT_UNUSED(uses_result);
  is_reused_result = true;
  /* Group::retire */
#ifdef NO_WAIT_FOR_OVER
  HAS_LEFT(1) && HAS_LEFT(2);
#else
#ifndef NO_RETIREMENT
  IS_PAST(1) && IS_PAST(2);
#endif
#endif
  ASSERT_UNUSED(uses_staged);
  is_reused_staged = true
}

proctype other(byte p) {
  bool is_complete;
  {
  is_decided;
  if
  :: !goes
  :: else ->
#ifdef NO_LEFT_AFTER_WORK
    left_seq[p] = true;
#endif
    assert(!is_reused_result); /* writes chunks of the result; then only a process that holds it uses it */
    if
    :: atomic { num_worked++; uses_result[p] = TAKES(p) };
      WORK_IS_OVER
    :: atomic { gives_up || has_ended -> uses_result[p] = TAKES(p) } /* left behind with its chunk */
    fi;
    is_complete = num_worked == N;
    left_seq[p] = true;
    assert(!is_complete || !is_reused_staged); /* take_staged */
    uses_staged[p] = false;
    if
    :: TAKES(p) ->
      assert(!is_reused_result); /* the caller keeps the result for some time; or let_go takes it */
      uses_result[p] = false;
#ifndef NO_RELEASE_AFTER_FAILURE
      hold[p]--
#else
      if :: is_complete -> hold[p]-- :: else fi
#endif
    :: else
    fi
  fi;
  over[p] = true
  } unless { is_killed && p == N - 1 }
}

proctype fate() {
  if
  :: skip
  :: is_killed = true; has_ended = true
  fi
}

init {
  atomic {
    if :: is_for_all = true :: skip fi;
    if :: goes = true :: skip fi;
    if :: goes -> gives_up = true :: skip fi;
    run owner();
    run other(1);
    if :: N > 2 -> run other(2) :: else fi;
    run fate()
  };
  is_named;
  d_step { /* all have arrived; from now on, each may use the blocks */
    is_decided = true;
    if :: goes -> uses_result[1] = true; uses_result[2] = N > 2; uses_staged[1] = true; uses_staged[2] = N > 2 :: else fi
  }
}
