"""The stack of modes of each thread and asyncio task."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet import context
from ringlet.context import Mode, Scope


def current_strategy() -> object:
    mode = context.current()
    return mode and mode.strategy


def test_nothing_is_current_outside_of_every_scope():
    assert context.current() is None


def test_the_innermost_scope_is_current():
    with Scope(Mode("outer")), Scope(Mode("inner")) as entered:
        assert entered == current_strategy() == "inner"
    assert context.current() is None


def test_an_exception_leaves_the_scope():
    with pytest.raises(KeyError), Scope(Mode("strategy")):
        raise KeyError("x")
    assert context.current() is None


def test_a_mode_with_a_replica_is_not_cross_replica():
    assert Mode("strategy").is_cross_replica
    assert not Mode("strategy", 0).is_cross_replica


def test_leaving_a_scope_that_is_not_on_top_names_both():
    outer, inner = Scope(Mode("outer strategy")), Scope(Mode("inner strategy"))
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(
        RuntimeError, match=r"'outer strategy' is not on top: the scope of 'inner strategy' is still open"
    ):
        outer.__exit__(None, None, None)
    assert current_strategy() == "inner strategy"
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


def test_a_scope_cannot_be_entered_twice():
    scope = Scope(Mode("strategy"))
    with scope, pytest.raises(RuntimeError, match="already entered"):
        scope.__enter__()


def test_a_scope_can_be_used_again_after_it_was_left():
    scope = Scope(Mode("strategy"))
    for _ in range(2):
        with scope:
            assert current_strategy() == "strategy"


def test_a_scope_that_was_not_entered_cannot_be_left():
    with pytest.raises(RuntimeError, match="is not entered"):
        Scope(Mode("strategy")).__exit__(None, None, None)


def test_a_scope_cannot_be_left_in_another_thread():
    scope = Scope(Mode("strategy"))
    with scope, ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="another thread"):
        pool.submit(scope.__exit__, None, None, None).result(timeout=30)


def test_other_threads_have_stacks_of_their_own():
    seen = []
    with Scope(Mode("strategy")):
        thread = threading.Thread(target=lambda: seen.append(context.current()))
        thread.start()
        thread.join(timeout=30)
    assert seen == [None]


def test_asyncio_tasks_have_stacks_of_their_own():
    async def inside(name: str) -> object:
        with Scope(Mode(name)):
            await asyncio.sleep(0)
            return current_strategy()

    async def both() -> list[object]:
        return list(await asyncio.gather(inside("a"), inside("b")))

    assert asyncio.run(both()) == ["a", "b"]


def test_wrap_carries_the_current_mode_into_an_executor():
    with ThreadPoolExecutor(1) as pool:
        with Scope(Mode("strategy", 3)):
            carried = context.wrap(context.current)
        mode = pool.submit(carried).result(timeout=30)
        assert (mode.strategy, mode.local_replica_id) == ("strategy", 3)
        assert pool.submit(context.current).result(timeout=30) is None


def test_wrap_keeps_name_arguments_and_exceptions():
    @context.wrap
    def fails(a: int, *, b: int) -> None:
        raise ValueError(a + b)

    assert fails.__name__ == "fails"
    with pytest.raises(ValueError, match="3"):
        fails(1, b=2)


def test_enter_lasts_as_long_as_the_context():
    def inside() -> object:
        context.enter(Mode("strategy", 1))
        return current_strategy()

    assert contextvars.copy_context().run(inside) == "strategy"
    assert context.current() is None


def test_an_update_is_cross_replica_and_has_the_index_of_its_component():
    with context.Scope(context.Mode("a strategy")) as strategy:
        assert context.current().update_replica_id is None
        with context.Scope(context.UpdateMode(strategy, 3)):
            assert context.current().is_cross_replica
            assert context.current().update_replica_id == 3
        assert context.current().update_replica_id is None


def test_a_call_in_a_mode_ends_it_whatever_happens():
    assert context.call_in(Mode("outer"), lambda mode: (current_strategy(), mode), mode=1) == ("outer", 1)
    with pytest.raises(KeyboardInterrupt):
        context.call_in(Mode("outer"), raise_interrupt)
    assert context.current() is None


def raise_interrupt() -> None:
    raise KeyboardInterrupt


def test_a_scope_that_is_interrupted_while_it_is_entered_or_left_is_not_current(monkeypatch):
    class Interrupted:  # as a signal handler that raises when the call is over
        def __init__(self, variable):
            self.get, self.real = variable.get, variable
            self.is_armed = True

        def set(self, mode):
            self.real.set(mode)
            if self.is_armed:
                self.is_armed = False
                raise_interrupt()

    for is_armed in (True, False):
        variable = Interrupted(context._CURRENT)
        variable.is_armed = is_armed
        monkeypatch.setattr(context, "_CURRENT", variable)
        with pytest.raises(KeyboardInterrupt), Scope(Mode("strategy")):
            variable.is_armed = True
        monkeypatch.undo()
        assert context.current() is None
