/* How a failure of a group reaches the ranks that wait in a subgroup of it, in other processes.
 *
 * Stands for Group::fail, lose and follow_parent (group.cpp), Member::split_between (split.cpp), Group::mark_split and the
 * constructor of a subgroup (subgroups.cpp), and World::spread_failure, receive_from, look and on_end (world.cpp).
 *
 * Process 0 joins no subgroup. Processes 1 and 2 do, and process 1 waits there for ever. Process 0 or 2 fails the group at
 * any moment, or process 0 is killed. Each NO_ macro removes one guard; the verification must then fail.
 */
#define N 3

bool failed, sub_failed;
bool was_split[N];
bool is_added[N]; /* the subgroup, in the list of processes 1 and 2 */
byte arrived;
bool is_killed;   /* process 0 */
chan socket[N] = [1] of { bit };

inline look(p) {
  if
  :: atomic { is_added[p] && failed -> sub_failed = true }
  :: else
  fi
}

inline send_to(p) { /* a full socket drops the message */
  if
  :: atomic { nfull(socket[p]) -> socket[p]!1 }
  :: full(socket[p])
  fi
}

proctype failing(byte p) {
  {
  if
  :: atomic { !failed -> failed = true };
#ifndef NO_SPREAD
    if
    :: was_split[p] -> send_to(1); send_to(2)
    :: else
    fi
#endif
  :: else
  fi
  } unless { is_killed && p == 0 }
}

proctype member(byte p) {
  {
#ifndef NO_MARK_BY_ALL
  was_split[p] = true;
#endif
  arrived++;
  arrived == N || failed;
  if
  :: arrived == N && p > 0 -> /* join_subgroup */
#ifdef NO_MARK_BY_ALL
    was_split[p] = true;
#endif
#ifdef NO_ADD_BEFORE_LOOK
    look(p);
    is_added[p] = true;
#else
    is_added[p] = true;
    look(p);
#endif
    if :: p == 1 -> sub_failed :: else fi
  :: else
  fi
  } unless { is_killed && p == 0 }
}

/* The monitor of process 1 */
proctype monitor(byte p) {
  bool is_told;
end:
  do
  :: nempty(socket[p]) ->
#ifdef NO_READ_BEFORE_LOOK
    look(p);
    socket[p]?_
#else
    socket[p]?_;
    look(p)
#endif
  :: is_killed && !is_told -> /* on_end */
    is_told = true;
    failed = true;
#ifndef NO_LOOK_AT_END
    look(p)
#endif
  od
}

init {
  atomic {
    if :: socket[1]!1 :: skip fi; /* a message that is not yet read */
    run member(0); run member(1); run member(2);
    run monitor(1);
    if :: run failing(0) :: run failing(2) fi
  };
  if :: is_killed = true :: skip fi
}
