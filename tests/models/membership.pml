/* How processes join a group, make one call, depart and close it.
 *
 * Stands for World::rendezvous, wait_for_all, send_control, receive_control, add and on_end (rendezvous.cpp, world.cpp),
 * Group::join_world and lose (group.cpp), depart (subgroups.cpp) and Round::misses_departed (round.cpp). A process that
 * raises closes its sockets (World::leave), even if its World lives on.
 *
 * One process may be killed, or lose its patience, anywhere; the others then end without a time-out of their own.
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef N
#define N 2
#endif
#define HELLO 1
#define VERDICT 2
#define CONTROL 3

byte got[9];     /* the last message that process q has sent to p: [3 * p + q] */
bool closed[3];  /* the other ends of its sockets report their end */
bool told[9];    /* on_end(q) has run in p: [3 * p + q] */
bool is_watching[3];
bool is_in_group[3]; /* World::add */
bool arrived[3], departed[3];
bool failed;
bool has_cause;  /* a process was killed, lost its patience, or departed early */
byte killed = N, impatient = N, early = N;

#define LOST(p, q) (q < N && q != p && got[3 * p + q] < level && closed[q])
#define HAS(p, q) (q >= N || q == p || got[3 * p + q] >= level)
#define ARRIVED(q) (q >= N || arrived[q])
#define ALL_ARRIVED (ARRIVED(0) && ARRIVED(1) && ARRIVED(2))
#define MISSES(q) (q < N && departed[q] && !arrived[q])

inline send_to_all(message) {
  q = 0;
  do
  :: q < N && q != p -> got[3 * q + p] = message; q++
  :: q < N && q == p -> q++
  :: else -> q = 0; break
  od
}

/* wait_for_all: goes to `raise` if a process that has not sent the message has closed its sockets */
inline wait_for_all(message, is_needed) {
  level = message;
  if
  :: (HAS(p, 0) && (is_needed == 0 || (HAS(p, 1) && HAS(p, 2))))
#ifndef NO_LOOK_FOR_CLOSED
  :: LOST(p, 0) || (is_needed != 0 && (LOST(p, 1) || LOST(p, 2))) -> goto raise
#endif
  :: impatient == p -> goto raise
  fi
}

inline lose(q) {
  if
#ifndef NO_LOOK_FOR_DEPARTED_IN_LOSE
  :: departed[q]
#endif
  :: else -> assert(has_cause); failed = true
  fi
}

proctype member(byte p) {
  byte level, q;
  {
  send_to_all(HELLO);
  wait_for_all(HELLO, 1);
  send_to_all(VERDICT);
  wait_for_all(VERDICT, 1);
  is_watching[p] = true;
  if
  :: p == 0 -> send_to_all(CONTROL)
  :: else -> wait_for_all(CONTROL, 0)
  fi;
  /* World::add, under the mutex of on_end */
  atomic {
    is_in_group[p] = true;
#ifndef NO_LOSE_IN_ADD
    if :: told[3 * p] -> lose(0) :: else fi;
    if :: told[3 * p + 1] -> lose(1) :: else fi;
    if :: told[3 * p + 2] -> lose(2) :: else fi
#endif
  };
  if
  :: early == p -> departed[p] = true; goto out /* it makes no call, and keeps its group open */
  :: else
  fi;
  arrived[p] = true;
  if
  :: ALL_ARRIVED
#ifndef NO_LOOK_FOR_DEPARTED
#ifdef NO_DEPARTED_BEFORE_ARRIVED
  :: !arrived[1 - (p & 1)]; departed[1 - (p & 1)]; assert(!arrived[1 - (p & 1)])
#else
  :: atomic { MISSES(0) || MISSES(1) || MISSES(2) -> assert(early < N) }
#endif
#endif
  :: failed
  :: impatient == p -> atomic { failed = true }
  fi;
#ifdef NO_DEPARTURE_BEFORE_CLOSE
  closed[p] = true; departed[p] = true;
#else
  departed[p] = true; closed[p] = true;
#endif
  goto out;
raise:
#ifndef NO_CLOSE_IN_LEAVE
  closed[p] = true;
#endif
out:
  skip
  } unless { killed == p }
}

/* The monitor of process p, for process q */
proctype monitor(byte p; byte q) {
end:
  if
  :: atomic { is_watching[p] && closed[q] -> told[3 * p + q] = true; if :: is_in_group[p] -> lose(q) :: else fi }
  fi
}

init {
  byte p, q;
  atomic {
    if
    :: skip
    :: has_cause = true; if :: impatient = 0 :: impatient = N - 1 fi
    :: has_cause = true; if :: early = 0 :: early = N - 1 fi
    fi;
    do
    :: p < N ->
      run member(p);
      q = 0;
      do
      :: q < N -> if :: q != p -> run monitor(p, q) :: else fi; q++
      :: else -> break
      od;
      p++
    :: else -> break
    od
  };
  if
  :: skip
  :: atomic { !has_cause -> has_cause = true; if :: killed = 0 :: killed = N - 1 fi }; closed[killed] = true
  fi
}
