"""One thread at a time makes the calls of a strategy of several processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet.strategy.multi_worker.thread_exclusion import Turn


def test_a_thread_may_enter_again_and_the_next_one_when_it_has_left():
    turn = Turn("the strategy")
    with turn, turn:
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: turn.__enter__() is turn).result(10)


def test_another_thread_is_refused_with_the_names_of_both():
    turn = Turn("the strategy of /job:worker/task:0")
    with (
        turn,
        ThreadPoolExecutor(1, thread_name_prefix="reader") as pool,
        pytest.raises(RuntimeError, match=r"two threads use the strategy of /job:worker/task:0.*'reader_0'.*'Main"),
    ):
        pool.submit(turn.__enter__).result(10)


def test_a_thread_acts_for_the_one_that_waits_for_it():
    turn = Turn("the strategy")

    def acts():
        with turn.lent(), turn:
            return "done"

    with turn, ThreadPoolExecutor(1) as pool:
        assert pool.submit(acts).result(10) == "done"
        with turn:  # and the first one goes on
            pass


def test_nobody_can_act_for_nobody():
    with pytest.raises(AssertionError), Turn("the strategy").lent():
        pass
