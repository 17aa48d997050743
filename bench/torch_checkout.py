"""Counts which tests of a PyTorch checkout pass over gloo and over the backend ringlet.

``python -m bench.torch_suite --checkout FOLDER test_c10d_gloo.py`` runs files below FOLDER/test/distributed, each over
both backends, in a separate process that forks one for each test. Tests name ``"gloo"`` or `ProcessGroupGloo`; the
backend is replaced in `torch.distributed`, where the group is created. For errors, the class is compared, not the text.
Tests without such a group are not counted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing.context
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["compare", "run_file"]

_CODES = {0: "passed", 1: "failed", 2: "skipped"}
_BACKENDS = ("gloo", "ringlet")


def compare(checkout: Path, files: Sequence[str], seconds: float, only: str, logs: Path) -> None:
    """Print the counts of each file, and each test that passes over gloo and not over ringlet."""
    totals = {backend: Counter[str]() for backend in _BACKENDS}
    for file in files:
        verdicts = {
            backend: _run_in_process(checkout / "test" / "distributed" / file, backend, seconds, only, logs)
            for backend in _BACKENDS
        }
        for backend, found in verdicts.items():
            counts = Counter(found.values())
            totals[backend] += counts
            print(f"{file} {backend}: {_line(counts)}", flush=True)
        for name, verdict in verdicts["gloo"].items():
            if verdict == "passed" and verdicts["ringlet"].get(name) != "passed":
                print(f"    {name}: {verdicts['ringlet'].get(name, 'not run')}", flush=True)
    for backend, counts in totals.items():
        print(f"all {backend}: {_line(counts)}")


def _line(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in _CODES.values())


def _run_in_process(file: Path, backend: str, seconds: float, only: str, logs: Path) -> dict[str, str]:
    log = logs if logs == Path(os.devnull) else logs / f"{file.stem}.{backend}.log"
    run = subprocess.run(
        [sys.executable, "-m", __name__, str(file), backend, str(seconds), str(log), only],
        env=os.environ
        | {"BACKEND": "gloo", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        | {"DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(int(seconds))},  # how long torch's tests wait for their ranks
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode:
        print(f"{file.name} cannot be run over {backend}: exit status {run.returncode}", flush=True)
    return {name: verdict for verdict, name in (line.split() for line in run.stdout.splitlines())}


def run_file(file: Path, backend: str, seconds: float, log: Path, only: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the verdict of each test that creates a gloo group, which is replaced by `backend`."""
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "has_group"
        _prepare(backend, marker)
        for test in _tests(_module(file)):
            name = ".".join(test.id().split(".")[-2:])
            if only not in name:
                continue
            marker.unlink(missing_ok=True)
            verdict = _verdict(test, name, seconds, log)
            if marker.exists():
                yield name, verdict


def _prepare(backend: str, marker: Path) -> None:
    """Replace gloo by the backend wherever a test creates a group by name or class, and record each replacement."""
    import torch
    from torch.distributed import distributed_c10d as c10d

    import ringlet.torch

    torch.set_num_threads(1)
    if not torch.accelerator.is_available():
        torch.accelerator.device_count = lambda: 8  # tests of FSDP skip themselves without as many, on CPU too
    # Forked ranks start at once, with the exchange; spawned ones would import torch again.
    multiprocessing.context._concrete_contexts["spawn"] = multiprocessing.get_context("fork")  # type: ignore[attr-defined]
    make_group: Callable[..., Any] = c10d._new_process_group_helper
    gloo = c10d.ProcessGroupGloo

    def make(size: int, rank: int, ranks: Any, name: Any, *args: Any, **options: Any) -> Any:
        if "gloo" in str(c10d.BackendConfig(c10d.Backend(name) if name else c10d.Backend("undefined"))):
            marker.touch()
            if name in (None, "", "undefined"):
                name = "gloo"
            name = str(name).replace("gloo", backend)
        return make_group(size, rank, ranks, name, *args, **options)

    class Group:
        """The attributes of `torch.distributed.ProcessGroupGloo` that tests use."""

        _Options, Options = gloo._Options, gloo.Options
        create_device, create_default_device = gloo.create_device, gloo.create_default_device

        def __new__(cls, store: Any, rank: int, size: int, options: Any = None, timeout: Any = None) -> Any:
            marker.touch()
            limit = timeout or getattr(options, "_timeout", options) or c10d.default_pg_timeout
            if backend == "gloo":
                return gloo(store, rank, size, options) if options is not None else gloo(store, rank, size, limit)
            return ringlet.torch.RingletProcessGroup(store, rank, size, limit)

    c10d._new_process_group_helper = make
    torch.distributed.ProcessGroupGloo = Group
    if backend != "gloo":
        ringlet.torch.RingletProcessGroup.create_device = lambda self, **options: None  # type: ignore[attr-defined]
        unittest.TestCase.assertRaisesRegex = _assert_raises  # type: ignore[method-assign]


def _assert_raises(test: unittest.TestCase, error: Any, text: Any, *args: Any, **options: Any) -> Any:
    """Assert the class: this backend raises `ValueError` where gloo raises `RuntimeError` about an argument."""
    expected = (error, ValueError) if error is RuntimeError else error
    return test.assertRaises(expected, *args, **options)  # noqa: PT027 - the test is one of unittest


def _module(file: Path) -> Any:
    root = next(parent for parent in file.parents if parent.name == "distributed" and parent.parent.name == "test")
    sys.path[:0] = [str(file.parent), str(root), str(root.parent)]
    sys.argv = [str(file)]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a file of Python.")
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _tests(module: Any) -> Iterator[unittest.TestCase]:
    left: list[Any] = [unittest.defaultTestLoader.loadTestsFromModule(module)]
    while left:
        item = left.pop()
        if isinstance(item, unittest.TestSuite):
            left.extend(reversed(list(item)))
        else:
            yield item


def _verdict(test: unittest.TestCase, name: str, seconds: float, log: Path) -> str:
    """Run a test in a new process group, which is killed after a time limit; return the verdict."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setsid()
            with log.open("a") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            print(f"=== {name}", flush=True)
            code = _run(test)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    deadline = time.monotonic() + 1.5 * seconds
    code = None
    while code is None and time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if code is None:
        os.waitpid(child, 0)
        return "failed"
    return _CODES.get(code, "failed")


def _run(test: unittest.TestCase) -> int:
    suite, result = unittest.TestSuite([test]), unittest.TestResult()
    suite.run(result)
    for _, text in (*result.errors, *result.failures):
        print(text, flush=True)
    if result.errors or result.failures or result.unexpectedSuccesses:
        return 1
    return 2 if result.skipped else 0


if __name__ == "__main__":
    path, name, limit, output, pattern = sys.argv[1:]
    for test, verdict in run_file(Path(path), name, float(limit), Path(output), pattern):
        print(verdict, test, flush=True)
