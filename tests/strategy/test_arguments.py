"""What is refused as arguments and options, and what is taken."""

from __future__ import annotations

from types import MappingProxyType

import pytest

import ringlet
from ringlet.strategy.arguments import check_arguments, check_input_options


@pytest.mark.parametrize("args", [(), [], (1,), [1, 2]])
@pytest.mark.parametrize("kwargs", [None, {}, {"x": 1}, MappingProxyType({"x": 1})])
def test_lists_tuples_and_mappings_are_arguments(args, kwargs):
    check_arguments(args, kwargs)


@pytest.mark.parametrize("kwargs", [[1], [], 5, "ab"])
def test_keyword_arguments_that_are_no_mapping_are_refused(kwargs):
    with pytest.raises(TypeError, match="kwargs must be a mapping of names to values or None"):
        check_arguments((), kwargs)


def test_input_options_are_options():
    check_input_options(ringlet.data.InputOptions())
