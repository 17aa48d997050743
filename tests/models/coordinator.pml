/* How a coordinator runs closures on workers that may be lost.
 *
 * Stands for ClosureQueue (closure_queue.py) with the threads of the program in put, join and is_done, for the loop of
 * the Dispatcher with _wake, _lose and _end (dispatcher.py), acceptor, give, recall, cancel and receive
 * (worker_connection.py), and for the reader and the runner of a worker (worker.py).
 *
 * One worker may be killed anywhere; a closure may raise, end its worker, or run until it is cancelled; the
 * coordinator may be stopped. The dispatcher sleeps without a time-out.
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef K
#define K 3 /* closures, in the order of their numbers */
#endif
#define W 2
#define LOSSES 2 /* _MOST_LOSSES */
#define NONE 15
#define RESULT 0
#define FAILURE 1
#define CANCELLED 2
#define RETURNED 3
#define BIT(c) (1 << (c))
#define ALL (BIT(K) - 1)

/* What closures do; fixed at the beginning. */
byte raises /* a set */, kills = NONE, endless = NONE;
bool may_stop, may_kill; /* the coordinator may be stopped, worker 0 killed */

/* ClosureQueue: the lock is held in each atomic sequence. */
byte queued, num_in_flight;
byte error = NONE, first = NONE; /* the kept error; the one that has to be raised */
bool is_final, is_cancelling, entrance;
bool parked[2]; /* threads that wait for has_changed */

byte put, settled; /* all closures that were given to put; those whose values are known */
byte losses[K];

/* Dispatcher and connections */
bool is_asleep, has_work, pipe, is_stopping, has_ended;
byte in_flight[W];
bool is_connected[W] = true, is_recalled[W], is_cancelled[W];
byte num_running = 1; /* threads of the program */

/* Workers */
chan back[W] = [4] of { byte, byte };
byte inbox[W], waiting[W], cancelled[W]; /* closures */
byte unsent[W] = NONE, kind_of[W];       /* the report that was not sent yet */
bool recall[W], is_gone[W], is_called[W];
byte running[W] = NONE;

#define HAS_ERROR (error != NONE || is_final)
#define IS_EMPTY (queued == 0 && num_in_flight == 0)
#define IS_READY(w) (is_connected[w] && (len(back[w]) > 0 || is_gone[w]))
#define NOTIFY parked[0] = false; parked[1] = false

#define settle(c) settle_all(BIT(c))

inline settle_all(set) {
  assert((settled & (set)) == 0); /* once */
  settled = settled | (set)
}

inline wake() {
  has_work = true;
  d_step { pipe = pipe || is_asleep; is_asleep = false }
}

/* _wait_until: a condition variable whose lock is held before and after */
#define WAIT_UNTIL(condition, then) \
  do \
  :: atomic { condition -> then; break } \
  :: atomic { !(condition) -> parked[t] = true }; !parked[t] \
  od

/* _raise_error: `raised` is whether it raises */
inline raise_error() {
  raised = false;
#ifndef NO_TURN_IN_RAISE_ERROR
  WAIT_UNTIL(!is_cancelling, if :: HAS_ERROR -> raised = true; is_cancelling = true :: else fi);
#else
  atomic { if :: HAS_ERROR -> raised = true; is_cancelling = true :: else fi };
#endif
  if
  :: raised ->
#ifndef NO_WAKE_IN_RAISE_ERROR
    wake();
#endif
#ifndef NO_WAIT_FOR_IN_FLIGHT
    WAIT_UNTIL(num_in_flight == 0 || is_final, skip);
#endif
    atomic {
      settle_all(queued);
      queued = 0;
      is_cancelling = false;
#ifndef NO_NOTIFY_IN_RAISE_ERROR
      NOTIFY;
#endif
      assert(is_final || (error != NONE && error == first));
      /* No function that was scheduled before runs any more. */
      assert(is_final || (running[0] == NONE && running[1] == NONE && inbox[0] == 0 && inbox[1] == 0));
      error = NONE;
      first = NONE
    }
  :: else
  fi
}

/* Thread 0 schedules all closures and joins until it has no error; thread 1 calls is_done() and join() once. */
proctype program(byte t) {
  byte c;
  bool raised;
  do
  :: t == 0 && c < K ->
    atomic { !entrance -> entrance = true; put = put | BIT(c) };
    do
    :: atomic { !HAS_ERROR -> queued = queued | BIT(c) }; wake(); break
    :: HAS_ERROR ->
      raise_error();
      if
      :: raised -> settle(c); break
      :: else /* another thread has raised it */
      fi
    od;
    entrance = false;
    c++
  :: t == 1 && c == 0 -> /* is_done */
    raise_error();
    c++
  :: else -> break
  od;
  do
  :: t == 1 && endless != NONE -> break /* a join() that waits for it would keep thread 0 from put() */
  :: atomic { (t == 0 || endless == NONE) && !entrance -> entrance = true };
    raised = false;
#ifndef NO_LOOK_FOR_ERROR_IN_JOIN
    WAIT_UNTIL(HAS_ERROR || IS_EMPTY, if :: !HAS_ERROR -> assert(settled == put) :: else fi);
#else
    WAIT_UNTIL(IS_EMPTY || is_final, skip);
#endif
    raise_error();
    entrance = false;
    if
    :: t == 1 || !raised || is_final -> break
    :: else
    fi
  od;
  atomic { num_running--; if :: num_running == 0 -> skip :: else -> goto out fi };
  !is_stopping || has_ended;
  assert(settled == ALL && (first == NONE || is_final));
out:
  skip
}

/* _land, after end() too */
inline land(count) {
  if
  :: num_in_flight >= count -> num_in_flight = num_in_flight - count
  :: else -> num_in_flight = 0
  fi;
#ifndef NO_NOTIFY_IN_LAND
  if :: num_in_flight == 0 -> NOTIFY :: else fi
#endif
}

inline fail(e) {
  first = (first == NONE -> e : first);
#ifndef NO_FIRST_ERROR
  error = (error == NONE -> e : error);
#else
  error = e;
#endif
  land(1);
#ifndef NO_NOTIFY_IN_FAIL
  NOTIFY
#endif
}

/* put_back of one closure */
inline put_back(c) {
  if
  :: is_cancelling || is_final -> settle(c)
  :: else -> queued = queued | BIT(c)
  fi;
  land(1)
}

inline handle(w) {
  atomic {
    back[w] ? kind, c;
    d = 0;
    do
    :: kind == RETURNED && d < K ->
      if
      :: (c & in_flight[w] & BIT(d)) != 0 -> in_flight[w] = in_flight[w] & ~BIT(d); put_back(d)
      :: else
      fi;
      d++
    :: else -> break
    od;
    d = 0;
    if
    :: kind != RETURNED && (in_flight[w] & BIT(c)) != 0 ->
      in_flight[w] = in_flight[w] & ~BIT(c);
      if :: kind != CANCELLED -> is_recalled[w] = false :: else fi
    :: else -> kind = RETURNED
    fi
  };
  if
  :: kind == RETURNED
  :: else ->
#ifndef NO_VALUE_BEFORE_COUNT
    settle(c);
#endif
    atomic { if :: kind == FAILURE -> fail(c) :: else -> land(1) fi; kind = RETURNED };
#ifdef NO_VALUE_BEFORE_COUNT
    settle(c);
#endif
  fi;
  c = 0
}

inline lose(w) {
  atomic {
    is_connected[w] = false;
    d = 0;
    e = NONE; /* the first in flight */
    do
    :: d < K ->
      if
      :: (in_flight[w] & BIT(d)) != 0 ->
        losses[d]++; /* of the first in flight, which may be another one than the running closure */
        assert(losses[d] <= LOSSES);
        e = d;
        break
      :: else
      fi;
      d++
    :: else -> break
    od;
    if
#ifndef NO_LIMIT_OF_LOSSES
    :: e != NONE && losses[e] >= LOSSES ->
      assert(e == kills);
      in_flight[w] = in_flight[w] & ~BIT(e);
      settle(e);
      fail(e)
#endif
    :: else
    fi
  };
  atomic {
    d = 0;
    do
    :: d < K ->
      if :: (in_flight[w] & BIT(d)) != 0 -> put_back(d) :: else fi;
      d++
    :: else -> d = 0; break
    od;
    in_flight[w] = 0; is_recalled[w] = false; is_cancelled[w] = false
  }
}

#define NUM(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))
#define IS_STUCK(w) (is_connected[w] && NUM(in_flight[w]) > 1 && !is_recalled[w])
#define FIRST(set) (((set) & 1) -> 0 : (((set) & 2) -> 1 : 2))
#ifndef NO_SUSPECTS_ALONE
#define IS_SUSPECT(set) (((set) & 1) && losses[0] || ((set) & 2) && losses[1] || ((set) & 4) && losses[2])
#else
#define IS_SUSPECT(set) false
#endif
#define IS_WANTED(w) (in_flight[w] == 0 || \
  (!is_recalled[w] && NUM(in_flight[w]) < 2 && !IS_SUSPECT(in_flight[w] | BIT(FIRST(queued)))))
#define MAY_TAKE (queued != 0 && !is_cancelling)

inline distribute(w) {
  do
  :: atomic { is_connected[w] && MAY_TAKE && IS_WANTED(w) ->
      c = FIRST(queued);
      queued = queued & ~BIT(c);
#ifndef NO_COUNT_IN_TAKE
      num_in_flight++;
#else
    };
    atomic {
#endif
      if :: in_flight[w] == 0 -> is_cancelled[w] = false :: else fi;
      in_flight[w] = in_flight[w] | BIT(c);
      if
      :: !is_gone[w] -> inbox[w] = inbox[w] | BIT(c); waiting[w] = waiting[w] | BIT(c)
      :: else
      fi
    };
#ifdef NO_COUNT_IN_TAKE
    d_step { num_in_flight++ }
#endif
  :: !(is_connected[w] && MAY_TAKE && IS_WANTED(w)) -> c = 0; break
  od
}

inline check(w) {
    if
    :: is_connected[w] && (is_late || is_cancelling) && IS_STUCK(w) ->
      is_recalled[w] = true;
      recall[w] = !is_gone[w]
    :: else
    fi;
#ifndef NO_CANCEL
    if
    :: is_connected[w] && is_cancelling && in_flight[w] != 0 && !is_cancelled[w] ->
      is_cancelled[w] = true;
      if :: !is_gone[w] -> cancelled[w] = in_flight[w] :: else fi
    :: else
    fi
#endif
}

inline read(w) {
  do
  :: is_connected[w] && len(back[w]) > 0 -> handle(w)
  :: is_connected[w] && len(back[w]) == 0 && is_gone[w] -> lose(w)
  :: !IS_READY(w) -> break
  od;
  c = 0; d = 0; e = 0; kind = 0
}

proctype dispatcher() {
  byte c, d, e, kind;
  bool is_late;
  do
  :: is_stopping -> break
  :: !is_stopping ->
#ifndef NO_ASLEEP_BEFORE_LOOK
    is_asleep = true;
#endif
    if
    :: has_work
    :: !has_work ->
#ifdef NO_ASLEEP_BEFORE_LOOK
      is_asleep = true;
#endif
end:
      if
      :: pipe || IS_READY(0) || IS_READY(1)
#ifndef NO_RECALL_OF_STUCK
      :: IS_STUCK(0) || IS_STUCK(1) -> is_late = true
#endif
      fi
    fi;
    atomic {
      is_asleep = false;
#ifndef NO_CLEAR_BEFORE_WORK
      has_work = false;
#endif
      pipe = false
    };
    read(0);
    read(1);
    atomic {
      if :: is_called[0] -> is_called[0] = false; is_gone[0] = false; is_connected[0] = true :: else fi;
      if :: is_called[1] -> is_called[1] = false; is_gone[1] = false; is_connected[1] = true :: else fi;
      check(0);
      check(1);
      is_late = false
    };
    distribute(0);
    distribute(1);
#ifdef NO_CLEAR_BEFORE_WORK
    has_work = false
#endif
  od;
  /* _end */
  atomic {
    is_final = true;
    settle_all(queued);
    queued = 0;
    num_in_flight = 0;
#ifndef NO_NOTIFY_IN_END
    NOTIFY
#endif
  };
  d_step { settle_all(in_flight[0] | in_flight[1]); in_flight[0] = 0; in_flight[1] = 0 };
  has_ended = true
}

inline die(w) {
  is_gone[w] = true; running[w] = NONE; unsent[w] = NONE;
  inbox[w] = 0; waiting[w] = 0; cancelled[w] = 0; recall[w] = false
}

inline send(w) {
  if
  :: unsent[w] != NONE -> back[w] ! kind_of[w], unsent[w]; unsent[w] = NONE
  :: else
  fi
}

/* Its reader, its runner, and the thread of the coordinator that waits for its next process */
proctype worker(byte w) {
end:
  do
  :: atomic { recall[w] -> /* _give_back */
      recall[w] = false;
      send(w);
      inbox[w] = inbox[w] & ~waiting[w];
      back[w] ! RETURNED, waiting[w];
      waiting[w] = 0
    }
  :: atomic { running[w] == NONE && inbox[w] != 0 ->
      running[w] = FIRST(inbox[w]);
      assert(running[0] != running[1]);
      inbox[w] = inbox[w] & ~BIT(running[w]);
#ifndef NO_CLAIM
      waiting[w] = waiting[w] & ~BIT(running[w])
#endif
    }
  :: atomic { running[w] != NONE && running[w] == kills -> die(w) }
  :: atomic { running[w] != NONE && running[w] != kills && (running[w] != endless || (cancelled[w] & BIT(running[w]))) ->
      send(w); /* of a report that was not due */
      waiting[w] = waiting[w] & ~BIT(running[w]);
      unsent[w] = running[w];
      if
      :: running[w] != endless -> kind_of[w] = ((raises & BIT(running[w])) -> FAILURE : RESULT)
      :: cancelled[w] & BIT(running[w]) -> kind_of[w] = CANCELLED
      fi;
      running[w] = NONE;
      if :: send(w) :: kills != NONE fi
    }
  :: atomic { unsent[w] != NONE -> send(w) }
  :: atomic { is_gone[w] && !is_connected[w] && !is_called[w] && !is_stopping -> is_called[w] = true };
    wake()
  od
}

proctype fate() {
  if
  :: may_stop -> is_stopping = true; wake()
  :: may_kill -> atomic { die(0) }
  fi
}

init {
  atomic {
    if /* one thing goes wrong at a time, which keeps the search small */
    :: may_stop = true
    :: may_kill = true
    :: kills = K - 1
    :: if :: raises = BIT(1); endless = 0 :: raises = BIT(0) | BIT(1) fi; run program(1); num_running++
    fi;
    run program(0);
    run worker(0);
    run worker(1);
    run dispatcher();
    if :: may_stop || may_kill -> run fate() :: else fi
  }
}
