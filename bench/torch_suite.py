"""Counts which tests included in ``torch.distributed`` pass over a backend, and over gloo.

Run as ``python -m bench.torch_suite --backend ringlet``; it needs torch and expecttest. They are the tests of
collectives, point to point, groups and DistributedDataParallel that PyTorch runs for gloo on CPU. Every test runs in
processes forked for it; it passes if all of them do. ``--checkout FOLDER FILE...`` instead runs test files that are
not part of torch, over both backends (`torch_checkout`).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.torch_checkout import compare

__all__ = ["main"]

_SKIPPED = range(70, 100)  # exit codes of torch's own decorators


def _suite(ranks: int, folder: str) -> Any:
    """Return the module of torch's tests, which select those of gloo; the default group uses the backend."""
    os.environ.update(
        BACKEND="gloo", WORLD_SIZE=str(ranks), TEMP_DIR=folder, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"
    )
    from torch.testing._internal.distributed import distributed_test as suite

    import ringlet.torch  # noqa: F401 - registers the backend

    return suite


def _run_rank(case: Any, name: str, rank: int, backend: str, store: str) -> int:
    import torch

    torch.set_num_threads(1)
    test = case(name)
    test.rank, test.file_name = rank, store
    torch.distributed.init_process_group(
        backend,
        init_method=f"file://{store}",
        world_size=int(test.world_size),
        rank=rank,
        timeout=timedelta(seconds=20),
    )
    try:
        getattr(test, name)()
        test._barrier()
        torch.distributed.destroy_process_group()
    except unittest.SkipTest:
        return _SKIPPED[0]
    except SystemExit as exit:
        return int(exit.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _run(suite: Any, case: Any, name: str, options: argparse.Namespace, log: Path) -> str:
    """Run one test; return its verdict."""
    suite.initialize_temp_directories()
    suite.Barrier.init()
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(options.ranks):
            child = os.fork()
            if not child:
                with log.open("a") as output:
                    os.dup2(output.fileno(), 1)
                    os.dup2(output.fileno(), 2)
                os._exit(_run_rank(case, name, rank, options.backend, f"{folder}/store"))
            children.append(child)
        codes = [_wait(child, time.monotonic() + options.seconds) for child in children]
    suite.cleanup_temp_dir()
    if all(code in _SKIPPED for code in codes):
        return "skipped"
    return "passed" if all(code == 0 or code in _SKIPPED for code in codes) else f"failed {codes}"


def _wait(child: int, deadline: float) -> int:
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests, and print those that failed and the counts.

    Returns
    -------
    int
        0, even if tests failed.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.torch_suite", description=__doc__)
    parser.add_argument("--backend", default="ringlet")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each test")
    parser.add_argument("--only", default="test_", help="the beginning of the names of tests")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="file for what the ranks print")
    parser.add_argument("--checkout", type=Path, help="of PyTorch; --log is a folder then, --only part of a name")
    parser.add_argument("files", nargs="*", help="of the checkout, below test/distributed")
    options = parser.parse_args(arguments)
    if options.checkout:
        compare(options.checkout, options.files, options.seconds, options.only, options.log)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        suite = _suite(options.ranks, folder)
        case = type("Case", (suite.DistributedTest._DistTestBase, suite.TestDistBackend), {})
        counts: Counter[str] = Counter()
        for name in sorted(each for each in dir(case) if each.startswith("test_") and each.startswith(options.only)):
            verdict = _run(suite, case, name, options, options.log)
            counts[verdict.split()[0]] += 1
            if verdict.startswith("failed"):
                print(f"{name}: {verdict}", flush=True)
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
