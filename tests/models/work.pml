/* The work of one call between processes, after the gate has let it go.
 *
 * Stands for Round::process_chunks and process_shares (round.hpp), WorkQueue (counters.hpp), finish_work,
 * wait_to_the_end, wait_for_leavers, wait_for_readers, is_left_behind, check_sources, give_up_unreachable, leave_work,
 * raise_after_leaving (round.cpp, staging.cpp), and for Group::keep_memory with CallReclaimPolicy (reclaim.cpp).
 *
 * A rank may pause anywhere for any time, as a stopped process does: the others then raise and reuse their memory.
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef N
#define N 3
#endif

bool is_across;  /* process_shares that reads private memory of others; else process_chunks */
bool is_private; /* process_chunks with private outputs, which only their owners write; else with shared ones */
bool has_timers; /* time-outs may pass */

byte arrived;
byte next[3];    /* WorkQueue: chunk r is the share of rank r */
byte done[3]; /* at first of the call before but one */
byte times[3];   /* how often a chunk was taken */
bool is_wrong;   /* some result was computed from memory that its owner had reused */
bool is_partial[3] = true; /* the chunk is not yet written */
bool failed, parked[3];
bool read_seq[3], left_seq[3], over[3];
bool reused_in[3], reused_out[3]; /* the owner has overwritten its inputs, its outputs */
byte halted = N; /* the rank that is killed or stopped for ever */
bool is_killed, is_gone;
bool is_cut;     /* the connections of rank 0, which lives, have closed */

#define IS_DONE (done[0] + done[1] + done[2] == N)
#define IS_READ(q) (q >= N || read_seq[q])
#define ALL_READ (IS_READ(0) && IS_READ(1) && IS_READ(2))
#define READY(what) ((what == 0 && IS_DONE) || (what == 1 && ALL_READ))
#define GONE(q) (is_gone && halted == q)
#ifndef NO_END_OF_PROCESS
#define HAS_ENDED(q) GONE(q)
#else
#define HAS_ENDED(q) false
#endif
#define OUT(q) (q >= N || q == r)
#ifndef NO_END_IN_LEFT
#define HAS_LEFT(q) (OUT(q) || left_seq[q] || over[q] || GONE(q))
#else
#define HAS_LEFT(q) (OUT(q) || left_seq[q] || over[q] || GONE(q) || (q == 0 && is_cut))
#endif
#define OTHERS_HAVE_LEFT (HAS_LEFT(0) && HAS_LEFT(1) && HAS_LEFT(2))
#define HAS_DONE_WITH(q) (OUT(q) || left_seq[q] || over[q] || HAS_ENDED(q))
#define IS_OVER (HAS_DONE_WITH(0) && HAS_DONE_WITH(1) && HAS_DONE_WITH(2))
#define IS_LEFT_BEHIND (failed && ((!OUT(0) && over[0]) || (!OUT(1) && over[1]) || (!OUT(2) && over[2])))
#define IS_CUT_OFF (is_across && is_killed && halted < N) /* is_connected() of the killed process is false */
#define IS_DISCONNECTED (IS_CUT_OFF || (is_across && is_cut))
#define IS_REUSED(what) ((!OUT(0) && what[0]) || (!OUT(1) && what[1]) || (!OUT(2) && what[2]))
#define NOTIFY d_step { parked[0] = false; parked[1] = false; parked[2] = false }

/* check_sources: goes to `unreachable` if what was read may be wrong */
inline check_sources() {
#ifndef NO_CHECK_OF_LEFT_BEHIND
  if :: IS_LEFT_BEHIND -> goto unreachable :: else fi;
#endif
#ifndef NO_CHECK_OF_CONNECTION
  if :: IS_DISCONNECTED -> goto unreachable :: else fi
#endif
}

inline claim() {
  if
  :: failed
  :: atomic { !failed -> failed = true }; NOTIFY
  fi
}

/* wait_to_the_end: goes to `raise` unless all is done, or read */
inline wait_to_the_end(what) {
  do
  :: atomic { READY(what) -> break }
  :: atomic { !READY(what) && failed -> break }
  :: atomic { !READY(what) && !failed -> parked[r] = true };
    if
    :: !parked[r]
    :: atomic { has_timers -> parked[r] = false; break }
    fi
  od;
  if
  :: READY(what)
  :: else ->
    claim();
    left_seq[r] = true; /* wait_for_leavers: polls, and stays 5 s at most */
    if
    :: READY(what) || OTHERS_HAVE_LEFT || has_timers || is_killed
    fi;
    if :: READY(what) :: else -> goto raise fi
  fi
}

proctype rank(byte r) {
  byte i, q, finished;
  bool reads_wrong;
  {
#ifndef NO_RESET
  d_step { next[r] = 0; done[r] = 0 };
#endif
  arrived++;
  arrived == N;
#ifdef NO_LEFT_AFTER_WORK
  left_seq[r] = true;
#endif
  if
  :: is_across -> /* process_shares: combine() */
    d_step { reads_wrong = IS_REUSED(reused_in) || IS_CUT_OFF };
    check_sources();
    d_step { is_wrong = is_wrong || reads_wrong; reads_wrong = false; times[r]++; is_partial[r] = false; finished = 1 }
  :: else -> /* process_chunks */
    do
    :: i < N ->
      q = (r + i) % N;
#ifdef NO_ATOMIC_TAKE
      if
      :: next[q] == 0 -> next[q] = 1;
#else
      if
      :: atomic { next[q] == 0 -> next[q] = 1 };
#endif
        d_step { times[q]++; assert(times[q] == 1) };
#ifdef NO_DONE_AFTER_WORK
        finished++; done[r] = finished;
#endif
        d_step { reads_wrong = reads_wrong || IS_REUSED(reused_in) };
        d_step { assert(is_private || !IS_REUSED(reused_out)); is_partial[q] = false };
#ifndef NO_DONE_AFTER_WORK
        finished++
#endif
      :: else
      fi;
      d_step { i++; q = 0 }
    :: else -> break
    od;
    if
    :: is_private -> d_step { reads_wrong = reads_wrong || IS_REUSED(reused_in) }
    :: else
    fi;
    if
    :: finished > 0 || is_private -> check_sources()
    :: else
    fi;
    d_step { is_wrong = is_wrong || reads_wrong; reads_wrong = false; i = 0; q = 0 }
  fi;
  d_step { done[r] = finished; finished = 0 }; /* finish_work */
  if
  :: IS_DONE ->
#ifndef NO_NOTIFY_OF_DONE
    NOTIFY
#endif
  :: else ->
#ifndef NO_WAIT_FOR_DONE
    wait_to_the_end(0)
#endif
  fi;
  if
  :: is_across || is_private -> /* take(), then wait_for_readers() */
    if
    :: is_across ->
      d_step { reads_wrong = IS_REUSED(reused_out) || IS_CUT_OFF };
      check_sources()
    :: else
    fi;
    read_seq[r] = true; NOTIFY;
#ifndef NO_WAIT_FOR_READERS
    wait_to_the_end(1);
#endif
    assert(!reads_wrong)
  :: else
  fi;
  /* The call is complete. */
  d_step {
    assert(!is_wrong && !is_partial[0] && !is_partial[1] && (N < 3 || !is_partial[2]));
    left_seq[r] = true; over[r] = true
  };
  d_step { reused_in[r] = true; reused_out[r] = true };
  goto out;

unreachable: /* give_up_unreachable */
  if :: failed :: has_timers fi;
  claim();
  left_seq[r] = true;
  if
  :: OTHERS_HAVE_LEFT || has_timers || is_killed
  fi;

raise: /* raise_after_leaving, ~Round, and what the caller does with its memory */
  atomic { q = OTHERS_HAVE_LEFT; i = 0; finished = 0; reads_wrong = false };
#ifdef NO_OVER_BEFORE_REUSE
  reused_in[r] = true;
#endif
  over[r] = true;
  reused_in[r] = true;
#ifndef NO_KEPT_MEMORY
  /* SharedHeap::allocate takes a block that was kept once its policy allows it. */
  q || IS_OVER || (halted < N && !is_killed);
  if :: q || IS_OVER -> reused_out[r] = true :: else fi;
#else
  reused_out[r] = true;
#endif
out:
  skip
  } unless { halted == r }
}

/* Rank 0 is killed at any moment, which all monitors report, or stopped for ever, or loses its connections; or none
 * of it. No rank is special. */
proctype fate() {
  arrived == N;
  if
  :: skip
  :: atomic { is_killed = true; halted = 0 };
    atomic { is_gone = true; failed = true };
    NOTIFY
  :: atomic { has_timers -> halted = 0 }
  :: atomic { is_cut = true; failed = true };
    NOTIFY
  fi
}

init {
  byte r;
  atomic {
    if
    :: is_across = true
#if N < 3 /* more than fits into memory */
    :: is_private = true
#endif
    :: skip
    fi;
    if :: has_timers = true :: skip fi;
    do
    :: r < N -> done[r] = 1; next[r] = 1; run rank(r); r++
    :: else -> break
    od;
    run fate()
  }
}
