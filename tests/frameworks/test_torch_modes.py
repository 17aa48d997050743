"""PyTorch's modes of the caller hold in every replica, whichever thread runs it."""

from __future__ import annotations

import pytest

import ringlet
from tests.frameworks.libraries import library

torch = library("torch")


@pytest.fixture
def strategy():
    return ringlet.MirroredStrategy(4)


def modes():
    product = torch.ones(2, 2) @ torch.ones(2, 2)
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), product.dtype


def test_gradient_inference_and_autocast_modes_are_those_of_the_caller(strategy):
    for entered, expected in (
        (torch.no_grad(), (False, False, torch.float32)),
        (torch.inference_mode(), (False, True, torch.float32)),
        (torch.autocast("cpu"), (True, False, torch.bfloat16)),
    ):
        with entered:
            results = strategy.local_results(strategy.run(modes))
        assert list(results) == [expected] * 4
    assert list(strategy.local_results(strategy.run(modes))) == [(True, False, torch.float32)] * 4
