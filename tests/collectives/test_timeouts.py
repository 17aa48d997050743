"""Time-outs as arguments and from the environment."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ringlet.collectives.timeouts import default_timeout_seconds, resolve_timeout


def test_the_environment_sets_the_default() -> None:
    assert default_timeout_seconds({"RINGLET_TIMEOUT_SECONDS": "2.5"}) == 2.5
    assert default_timeout_seconds({"RINGLET_TIMEOUT_SECONDS": ""}) == 600


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_a_bad_variable_is_shown_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=f"RINGLET_TIMEOUT_SECONDS is '{text}': expected a positive number of seconds"):
        default_timeout_seconds({"RINGLET_TIMEOUT_SECONDS": text})


def test_none_is_the_default_and_zero_is_never() -> None:
    assert resolve_timeout(None) == default_timeout_seconds()
    assert resolve_timeout(0) == math.inf


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_bad_argument_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="0 for no limit, or None for the default"):
        resolve_timeout(seconds)
