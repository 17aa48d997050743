"""Checks of arguments and options: what is accepted and what is refused."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from types import MappingProxyType
from unittest.mock import MagicMock

import pytest

import ringlet
from ringlet.strategy.calls.argument_checks import check_arguments, check_function, check_input_options


@pytest.mark.parametrize("args", [(), [], (1,), [1, 2]])
@pytest.mark.parametrize("kwargs", [None, {}, {"x": 1}, MappingProxyType({"x": 1})])
def test_lists_tuples_and_mappings_are_arguments(args, kwargs):
    check_arguments(args, kwargs)


@pytest.mark.parametrize("kwargs", [[1], [], 5, "ab"])
def test_keyword_arguments_must_be_a_mapping(kwargs):
    with pytest.raises(TypeError, match="kwargs must be a mapping of names to values or None"):
        check_arguments((), kwargs)


def test_input_options_are_options():
    check_input_options(ringlet.data.InputOptions())


async def coroutine_step() -> int:
    return 5


async def generator_step() -> AsyncIterator[int]:
    yield 5


class Step:
    async def __call__(self) -> int:
        return 5

    async def method(self) -> int:
        return 5


@pytest.mark.parametrize(
    "step",
    [coroutine_step, generator_step, Step(), Step().method, functools.partial(coroutine_step)],
    ids=["function", "generator", "object", "method", "partial"],
)
def test_an_async_step_function_is_refused(step):
    for strategy in (ringlet.MirroredStrategy(["CPU:0", "CPU:1"]), ringlet.get_strategy()):
        for call in (strategy.run, strategy.extended.call_for_each_replica):
            with pytest.raises(TypeError, match=r"is an async function.*asyncio\.run"):
                call(step)


@pytest.mark.parametrize("step", [max, functools.partial(max, 1), str, MagicMock()])
def test_other_callables_are_step_functions(step):
    check_function(step)
