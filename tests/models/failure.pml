/* The first failure of a group of processes and its text.
 *
 * Stands for FailureWord (failure_word.hpp), Group::claim_failure and first_failure (group.cpp). Two threads of process 0
 * and one of each other process fail the group; every thread then reads the failure. A process may be killed anywhere.
 *
 * Each NO_ macro removes one guard; the verification must then fail.
 */
#ifndef N
#define N 2
#endif

byte claim;                /* FailureWord: 0, or the author plus 1 */
byte note[N], note_end[N]; /* the text of each process, which is written in two steps */
byte cause;                /* the text of the first claim */
bool is_locked[N];         /* Group::failure_mutex_ */
bool is_killed;            /* process 0 */

#ifdef NO_OWN_NOTE
#define NOTE(p) 0
#else
#define NOTE(p) (p)
#endif

proctype failing(byte p; byte text) {
  {
#ifndef NO_MUTEX
  atomic { !is_locked[p] -> is_locked[p] = true };
#endif
  if
#ifndef NO_LOOK_BEFORE_TEXT
  :: claim != 0
#endif
  :: else ->
#ifndef NO_TEXT_BEFORE_CLAIM
    note[NOTE(p)] = text;
    note_end[NOTE(p)] = text;
#endif
    if
#ifndef NO_FIRST_CLAIM
    :: atomic { claim == 0 -> claim = p + 1; cause = text }
#else
    :: atomic { claim == 0 -> skip }; atomic { claim = p + 1; cause = (cause == 0 -> text : cause) }
#endif
    :: else
    fi;
#ifdef NO_TEXT_BEFORE_CLAIM
    note[NOTE(p)] = text;
    note_end[NOTE(p)] = text;
#endif
  fi;
  is_locked[p] = false;
  assert(note[NOTE(claim - 1)] == cause);
  assert(note_end[NOTE(claim - 1)] == cause)
  } unless { is_killed && p == 0 }
}

init {
  byte p = 1;
  atomic {
    run failing(0, 1);
    run failing(0, 2);
    do
    :: p < N -> run failing(p, 2 + p); p++
    :: else -> break
    od
  };
  if :: is_killed = true :: skip fi
}
