"""The example with PyTorch learns, keeps its modules equal, and computes the same on any number of replicas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.frameworks.libraries import library

torch = library("torch")
library("sklearn")

from examples import torch_training  # noqa: E402 - needs the libraries above


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_it_learns_to_tell_digits_apart_and_its_modules_stay_equal():
    trainer = torch_training.train(2, epochs=4, channels=16)
    assert trainer.accuracy() > 0.8
    first, second = (list(module.parameters()) for module in trainer.modules())
    assert all(torch.equal(mine, other) for mine, other in zip(first, second, strict=True))
    assert all(mine.data_ptr() != other.data_ptr() for mine, other in zip(first, second, strict=True))


def test_any_number_of_replicas_comes_to_the_same():
    trainers = [torch_training.Trainer(replicas, channels=4, batch=90) for replicas in (1, 3)]
    for batches in zip(*(trainer.batches for trainer in trainers), strict=True):
        losses = [trainer.step(batch) for trainer, batch in zip(trainers, batches, strict=True)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["--epochs", "1"], ["epoch  1  loss", "accuracy"]), (["--compare"], ["1 replica ", "2 replicas", "speed-up"])],
)
def test_the_script_runs(arguments, words):
    command = [sys.executable, torch_training.__file__, "--channels", "4", "--replicas", "2", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(word in done.stdout for word in words)
