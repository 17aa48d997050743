"""Exclusive use of a strategy by one thread at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet.strategy.multi_worker.worker_group import ThreadExclusion


def test_a_thread_may_enter_again_and_another_once_it_has_left():
    exclusion = ThreadExclusion("the strategy")
    with exclusion, exclusion:
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: exclusion.__enter__() is exclusion).result(10)


def test_another_thread_gets_an_error_that_names_both():
    exclusion = ThreadExclusion("the strategy of /job:worker/task:0")
    with (
        exclusion,
        ThreadPoolExecutor(1, thread_name_prefix="reader") as pool,
        pytest.raises(RuntimeError, match=r"two threads use the strategy of /job:worker/task:0.*'reader_0'.*'Main"),
    ):
        pool.submit(exclusion.__enter__).result(10)


def test_a_thread_acts_for_the_holder_that_waits():
    exclusion = ThreadExclusion("the strategy")

    def act():
        with exclusion.transferred(), exclusion:
            return "done"

    with exclusion, ThreadPoolExecutor(1) as pool:
        assert pool.submit(act).result(10) == "done"
        with exclusion:  # the holder is restored
            pass


def test_without_a_holder_there_is_nothing_to_transfer():
    with pytest.raises(AssertionError), ThreadExclusion("the strategy").transferred():
        pass
