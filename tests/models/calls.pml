/* Arrivals at the calls of a group, and the decision on whether a call takes place.
 *
 * Stands for Round::Round, publish, await_others, await_others_for_work, propose_to_leave, give_up (round.cpp),
 * Gate::decide (gate.hpp), Slot (slot.hpp), and Group::claim_failure and lose (group.cpp). Event::notify wakes all ranks
 * that are parked; relacy checks that a rank which parks misses no notify (weak_memory.cpp).
 *
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef N
#define N 3
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifdef NO_TWO_SETS
#define SET(s) 0
#else
#define SET(s) ((s) & 1)
#endif
#ifdef NO_TWO_GATES
#define GATE(s) 0
#else
#define GATE(s) ((s) & 1)
#endif

byte slot[6];     /* Slot::sequence_ of rank r and set: [2 * r + set] */
byte payload[6];  /* the rest of the slot */
byte gate_call[2];
bool gate_goes[2];
bool has_leavers;
bool failed;
bool parked[3];

bool has_work[CALLS + 1]; /* per call: arrive_for_work() or arrive() */
bool went[CALLS + 1], off[CALLS + 1]; /* what ranks took to be decided */

byte timers = 7;  /* the ranks whose time-out may pass, one bit each */
byte halted = N;  /* the rank that is killed or stopped for ever */
bool is_killed;

#define ARRIVED(r, s) (r >= N || slot[2 * (r) + SET(s)] >= s)
#define ALL_ARRIVED(s) (ARRIVED(0, s) && ARRIVED(1, s) && ARRIVED(2, s))
#ifdef NO_LOOK_FOR_FAILURE
#define READY(s) (ALL_ARRIVED(s))
#else
#define READY(s) (ALL_ARRIVED(s) || failed)
#endif
#define HAS_PAYLOAD(r, s) (r >= N || payload[2 * (r) + SET(s)] == s)
#define NOTIFY d_step { parked[0] = false; parked[1] = false; parked[2] = false }

/* Gate::decide: the first proposal for a call wins. */
inline propose(s, wish, goes) {
  d_step {
#ifndef NO_GATE
    if
#ifndef NO_CALL_IN_GATE
    :: gate_call[GATE(s)] != s -> gate_call[GATE(s)] = s; gate_goes[GATE(s)] = wish
#else
    :: gate_call[GATE(s)] == 0 -> gate_call[GATE(s)] = s; gate_goes[GATE(s)] = wish
#endif
    :: else
    fi;
    goes = gate_goes[GATE(s)]
#else
    goes = wish
#endif
  }
}

proctype rank(byte r) {
  byte s = 1;
  bool late, goes, all;
  {
  do
  :: s > CALLS || failed -> break /* Round::Round */
  :: else ->
#ifdef NO_SLOT_BEFORE_SEQUENCE
    slot[2 * r + SET(s)] = s; payload[2 * r + SET(s)] = s;
#else
    payload[2 * r + SET(s)] = s; slot[2 * r + SET(s)] = s;
#endif
    if
    :: atomic { ALL_ARRIVED(s) -> goes = true };
#ifndef NO_NOTIFY_OF_ARRIVAL
      NOTIFY;
#endif
#ifndef NO_LOOK_FOR_LEAVERS
      if
      :: atomic { has_work[s] && has_leavers -> propose(s, true, goes) }
      :: else
      fi
#endif
    :: else ->
      do /* wait_for(all_have_arrived() || is_hopeless()) */
      :: atomic { READY(s) -> break }
      :: atomic { !READY(s) -> parked[r] = true };
        if
        :: !parked[r]
        :: atomic { timers & (1 << r) -> parked[r] = false; late = true; break }
        fi
      od;
#ifdef NO_LOOK_FOR_LEAVERS_LAST
      atomic { goes = !has_work[s] || !has_leavers }; atomic { goes = goes && ALL_ARRIVED(s) };
#else
      atomic { goes = ALL_ARRIVED(s) };
      if
      :: atomic { has_work[s] -> goes = goes && !failed && !has_leavers }
      :: else
      fi;
#endif
      if
      :: goes || !has_work[s]
      :: else -> /* propose_to_leave */
#ifdef NO_FLAG_BEFORE_LOOK
        all = ALL_ARRIVED(s); has_leavers = true;
#else
        has_leavers = true; all = ALL_ARRIVED(s);
#endif
        atomic { propose(s, all, goes); all = false }
      fi
    fi;
    if
    :: atomic { goes -> goes = false; went[s] = true; assert(!(has_work[s] && off[s])) };
      /* compare, and the work: no slot is older or newer than the call */
      atomic { assert(HAS_PAYLOAD(0, s) && HAS_PAYLOAD(1, s) && HAS_PAYLOAD(2, s)); late = false; s++ }
    :: atomic { !goes -> off[s] = true; assert(!(has_work[s] && went[s])) };
      if /* give_up */
      :: late || failed || timers & (1 << r)
      fi;
      if
      :: failed
      :: atomic { !failed -> failed = true };
#ifndef NO_NOTIFY_OF_FAILURE
        NOTIFY
#endif
      fi;
      break
    fi
  od
  } unless { halted == r }
}

/* One rank is killed or stopped for ever at any moment, or none is. */
proctype fate() {
  if
  :: skip
  :: atomic { is_killed -> if :: halted = 0 :: halted = 1 :: halted = N - 1 fi }
    failed = true; /* Group::lose, in the processes that are left */
#ifndef NO_NOTIFY_OF_LOSS
    NOTIFY
#endif
  :: atomic { !is_killed && timers == 7 -> if :: halted = 0 :: halted = 1 :: halted = N - 1 fi }
  fi
}

/* Either the time-outs of all ranks may pass, or that of one rank, which must then fail the others; or a rank is killed,
 * and the others must end without a time-out. */
init {
  byte s = 1;
  atomic {
    do
    :: s > CALLS -> break
    :: else -> if :: has_work[s] = true :: skip fi; s++
    od;
    if :: timers = 7 :: timers = 1 :: timers = 0; is_killed = true fi;
    s = 0;
    do
    :: s < N -> run rank(s); s++
    :: else -> break
    od;
    run fate()
  }
}
