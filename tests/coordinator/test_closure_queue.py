"""ClosureQueue keeps the order of closures, its bound, and the first error."""

from __future__ import annotations

import threading

import pytest

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.closure_queue import ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.errors import CancelledError
from tests.coordinator.in_threads import wait_for

FUNCTION = SentFunction(Payload(b""), "step", "")


def closure(number):
    value = RemoteValue()
    made = Closure(number, FUNCTION, None, value)
    return made, value


def filled(count, **kwargs):
    queue = ClosureQueue(lambda: None, **kwargs)
    pairs = [closure(number) for number in range(count)]
    for made, _ in pairs:
        queue.put(made)
    return queue, [made for made, _ in pairs], [value for _, value in pairs]


def numbers(closures):
    return [each.number for each in closures]


def everything(_):
    return True


def in_thread(call):
    """Start a call; give what waits for it, and its outcome."""
    outcome = []

    def run():
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def test_closures_leave_in_the_order_in_which_they_came():
    queue, _, _ = filled(5)
    assert numbers(queue.take(everything, 3)) == [0, 1, 2]
    assert numbers(queue.take(everything, 3)) == [3, 4]
    assert queue.take(everything, 3) == []


def test_taking_ends_at_the_first_that_is_not_wanted():
    queue, _, _ = filled(5)
    assert numbers(queue.take(lambda each: each.number != 2, 5)) == [0, 1]
    assert len(queue) == 3


def test_what_is_put_back_has_its_old_place():
    queue, closures, _ = filled(6)
    queue.take(everything, 4)
    queue.put_back([closures[3], closures[1]])
    queue.put_back([closures[0]])
    assert numbers(queue.take(everything, 6)) == [0, 1, 3, 4, 5]


def test_a_full_queue_makes_whoever_schedules_wait():
    queue, _, _ = filled(2, most_queued=2)
    late, _ = closure(2)
    thread, outcome = in_thread(lambda: queue.put(late))
    thread.join(0.05)
    assert thread.is_alive()
    assert numbers(queue.take(everything, 1)) == [0]
    thread.join(30)
    assert outcome == [None]
    assert len(queue) == 2


def test_an_error_wakes_who_waits_for_room_and_is_raised_there():
    queue, _, _ = filled(1, most_queued=1)
    queue.take(everything, 1)
    queue.put(closure(1)[0])
    late, value = closure(2)
    thread, outcome = in_thread(lambda: queue.put(late))
    thread.join(0.05)
    queue.fail(KeyError("weights"))
    thread.join(30)
    assert [type(each) for each in outcome] == [KeyError]
    with pytest.raises(CancelledError):
        value.fetch()


def test_join_waits_for_what_is_in_flight():
    queue, _, _ = filled(2)
    queue.take(everything, 2)
    thread, outcome = in_thread(queue.join)
    queue.finish(1)
    thread.join(0.05)
    assert thread.is_alive()
    queue.finish(1)
    thread.join(30)
    assert outcome == [None]
    assert queue.is_done()


def test_who_joins_does_not_wait_for_what_others_schedule_meanwhile():
    queue, _, _ = filled(1)
    queue.take(everything, 1)
    joining, _ = in_thread(queue.join)
    joining.join(0.02)
    late, _ = closure(1)
    putting, _ = in_thread(lambda: queue.put(late))
    putting.join(0.02)
    assert len(queue) == 0
    queue.finish(1)
    joining.join(30)
    putting.join(30)
    assert len(queue) == 1


def test_an_error_waits_for_what_is_in_flight_and_cancels_the_rest():
    queue, closures, values = filled(4)
    queue.take(everything, 3)
    queue.fail(KeyError("weights"))
    thread, outcome = in_thread(queue.join)
    thread.join(0.05)
    assert thread.is_alive()
    assert queue.is_cancelling
    assert queue.take(everything, 1) == []
    queue.put_back([closures[2]])  # a worker gives back what it has not begun
    queue.finish(1)
    thread.join(30)
    assert [type(each) for each in outcome] == [KeyError]
    for value in values[2:]:
        with pytest.raises(CancelledError, match="Please reschedule the function"):
            value.fetch()


def test_the_first_error_counts_and_is_forgotten_once_it_was_raised():
    queue, _, _ = filled(2)
    queue.take(everything, 2)
    queue.fail(KeyError("first"))
    queue.fail(KeyError("second"))
    with pytest.raises(KeyError, match="first"):
        queue.is_done()
    assert queue.is_done()
    queue.join()


def test_two_threads_that_find_an_error_raise_it_once():
    queue, _, _ = filled(2)
    queue.take(everything, 2)
    queue.fail(KeyError("weights"))
    threads = [in_thread(queue.is_done) for _ in range(2)]
    threads[0][0].join(0.05)
    queue.finish(1)
    for thread, _ in threads:
        thread.join(30)
    outcomes = [each for _, outcome in threads for each in outcome]
    assert sorted(type(each).__name__ for each in outcomes) == ["KeyError", "bool"]


def test_of_two_threads_that_find_an_error_one_alone_cancels():
    # Else the second one could cancel what was scheduled after the first one had raised the error.
    cancelling = []
    queue = ClosureQueue(lambda: cancelling.append(queue.is_cancelling))
    pairs = [closure(number) for number in range(2)]
    for made, _ in pairs:
        queue.put(made)
    queue.take(everything, 2)
    queue.fail(KeyError("weights"))
    threads = [in_thread(queue.is_done)[0] for _ in range(2)]
    wait_for(lambda: queue._num_waiting == 2)
    queue.finish(1)
    for thread in threads:
        thread.join(30)
    assert cancelling == [False, False, True]


def test_a_final_error_is_raised_for_good_and_releases_who_waits():
    queue, _, values = filled(2)
    queue.take(everything, 1)
    thread, outcome = in_thread(queue.join)
    thread.join(0.02)
    queue.end(OSError("gone"), CancelledError("not run"))
    thread.join(30)
    assert [type(each) for each in outcome] == [OSError]
    with pytest.raises(CancelledError, match="not run"):
        values[1].fetch()
    for call in (queue.join, queue.is_done, lambda: queue.put(closure(9)[0])):
        with pytest.raises(OSError, match="gone"):
            call()


def test_who_is_interrupted_while_all_is_cancelled_holds_up_nobody():
    calls = []

    def interrupted_once():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    queue = ClosureQueue(interrupted_once)
    made, _ = closure(0)
    queue.put(made)
    queue.take(everything, 1)
    queue.fail(ValueError("bad"))
    with pytest.raises(KeyboardInterrupt):
        queue.join()
    _, outcome = in_thread(queue.join)
    wait_for(lambda: outcome)
    assert str(outcome[0]) == "bad"
