"""The example with PyTorch on several processes: it learns, and comes to what DistributedDataParallel comes to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import bench.torch_mlp
from ringlet.strategy.multi_worker import multi_worker_extended
from tests.frameworks.libraries import library

torch = library("torch")
library("sklearn")

from examples import torch_mlp  # noqa: E402 - needs the libraries above

NIGHTLY = bool(os.environ.get("RINGLET_CI_NIGHTLY"))


@pytest.fixture(autouse=True)
def one_thread_and_replica(monkeypatch):
    monkeypatch.setattr(multi_worker_extended, "requested_devices", tuple)  # other tests may have asked for several
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_it_has_ten_million_parameters():
    sizes = list(zip(torch_mlp.WIDTHS, torch_mlp.WIDTHS[1:], strict=False))
    assert sum((before + 1) * after for before, after in sizes) == pytest.approx(10e6, rel=0.01)


def test_two_workers_see_all_rows_of_a_batch():
    parts = [torch_mlp.Part(worker, 2, batch=8) for worker in range(2)]
    whole = torch_mlp.Part(0, 1, batch=8)
    for step in (0, 3):
        assert torch.equal(torch.cat([part[step][0] for part in parts]), whole[step][0])


def test_one_process_learns():
    trainer = torch_mlp.RingletTrainer(widths=(1024, 32, 32, 10))
    losses = [float(trainer.step(number)) for number in range(100)]
    assert np.mean(losses[-10:]) < 0.7 * losses[0]


def test_several_replicas_in_a_process_are_refused(monkeypatch):
    monkeypatch.setattr(multi_worker_extended, "requested_devices", lambda: ("CPU:0", "CPU:1"))
    with pytest.raises(SystemExit, match="one replica each"):
        torch_mlp.RingletTrainer(widths=(1024, 10))


def test_gradients_are_shared_and_leave_their_own_memory():
    module = torch_mlp.make_module((4, 3, 2))
    gradients = torch_mlp.SharedGradients(module)
    module(torch.ones(5, 4)).sum().backward()
    assert all(parameter.grad is None for parameter in module.parameters())
    assert gradients.array.any()
    gradients.use(gradients.array * 2)
    joined = torch.cat([parameter.grad.reshape(-1) for parameter in module.parameters()])
    assert torch.equal(joined, torch.from_numpy(gradients.array * 2))


def test_two_workers_come_to_what_gloo_comes_to_and_every_figure_is_written(tmp_path, capsys):
    path = tmp_path / "out.json"
    assert bench.torch_mlp.main(["--small", "--json", str(path)]) == 0  # raises where they differ
    written = json.loads(path.read_text(encoding="utf-8"))
    assert {name: len(values) for name, values in written["seconds"].items()} == {"ringlet": 2, "gloo, 25 MB": 2}
    assert "steps/s / best gloo" in capsys.readouterr().out


def test_the_script_says_how_it_goes(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torch_mlp.py", "--hidden", "16", "--epochs", "1"])
    torch_mlp.main()
    out = capsys.readouterr().out
    assert "epoch 1  loss" in out
    assert "the weights are the same in all processes" in out


@pytest.mark.skipif(not NIGHTLY, reason="starts torch four times more: nightly")
@pytest.mark.parametrize("library_name", ["ringlet", "gloo"])
def test_the_launcher_runs_the_script(library_name):
    command = [sys.executable, "-m", "ringlet", "run", "-n", "2", torch_mlp.__file__, "--with", library_name]
    command += ["--hidden", "16", "--epochs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "[w0] epoch 1  loss" in done.stdout
    assert "[w0] the weights are the same in all processes" in done.stdout
