"""Tests of a checkout, run over gloo and over the ringlet backend."""

from __future__ import annotations

from pathlib import Path

from bench.torch_suite import main
from tests.frameworks.libraries import library

library("torch")

FILE = """
import unittest
import torch
import torch.distributed as dist

class Group(unittest.TestCase):
    def setUp(self):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)

    def test_sum(self):
        dist.all_reduce(torch.ones(1))

    def test_name(self):
        self.assertEqual(dist.get_backend(), "gloo")

    def test_class_of_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "Cannot use ReduceOp.BAND|Invalid op for"):
            dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND)

    def test_it_may_have_several_ranks(self):
        self.assertGreaterEqual(torch.accelerator.device_count(), 2)

    def test_skip(self):
        self.skipTest("")

class Direct(unittest.TestCase):
    def test_group(self):
        group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
        group.barrier().wait()

    def test_without_a_group(self):
        pass
"""


def test_a_file_is_run_over_both_backends(tmp_path: Path, capsys):
    folder = tmp_path / "test" / "distributed"
    folder.mkdir(parents=True)
    (folder / "test_groups.py").write_text(FILE)
    assert main(["--checkout", str(tmp_path), "test_groups.py", "--log", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "test_groups.py gloo: 5 passed, 0 failed, 1 skipped",
        "test_groups.py ringlet: 4 passed, 1 failed, 1 skipped",
        "    Group.test_name: failed",
        "all gloo: 5 passed, 0 failed, 1 skipped",
        "all ringlet: 4 passed, 1 failed, 1 skipped",
    ]
    assert "'ringlet' != 'gloo'" in (tmp_path / "test_groups.ringlet.log").read_text()
