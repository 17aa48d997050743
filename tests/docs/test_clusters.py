"""Commands and failures of docs/clusters.md and README.md: each is run, and prints the text that is shown."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ringlet

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS = 60

CLUSTER = {"worker": ["localhost:2222", "localhost:2223"]}


def program_of(document: str) -> str:
    """Return the first program, ``sum.py``."""
    return re.search(r"^```py\n(# sum\.py\n.*?)^```$", document, re.MULTILINE | re.DOTALL)[1]


def sessions(document: str) -> list[tuple[str, str]]:
    """Return every console command with the lines that it prints; a definition is joined to the next command."""
    blocks = re.findall(r"^```console\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    found, before = [], ""
    for block in blocks:
        for command, printed in re.findall(r"^\$ (.*)\n((?:[^$\n].*\n)*)", block, re.MULTILINE):
            if printed:
                found.append((f"{before}{command}", printed))
            before = "" if printed else f"{command}\n"
    return found


def filled(folder: Path) -> Path:
    """Put the program into a folder, and the commands ``python`` and ``ringlet`` of this interpreter."""
    commands = folder / "bin"
    commands.mkdir()
    for name, module in (("python", ""), ("ringlet", " -m ringlet")):
        (commands / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{module} "$@"\n', encoding="utf-8")
        (commands / name).chmod(0o755)
    (folder / "sum.py").write_text(program_of(DOCUMENT), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """Outputs of all commands and failures, run in the background because most of their time is waiting."""
    calls = {
        **FAILURES,
        **{command: partial(run, command=["bash", "-c", command]) for command, _ in sessions(DOCUMENT)},
    }
    threads = ThreadPoolExecutor(4)
    yield {
        name: threads.submit(call, filled(tmp_path_factory.mktemp(f"try{number}")))
        for number, (name, call) in enumerate(calls.items())
    }
    threads.shutdown(cancel_futures=True)


def environment(folder: Path, **others: str) -> dict[str, str]:
    # Unbuffered, two processes that print at the same time would mix their lines.
    others_own = ("RINGLET_", "TF_", "SLURM_", "PYTHONUNBUFFERED")
    own = {name: value for name, value in os.environ.items() if not name.startswith(others_own)}
    path = f"{folder / 'bin'}:{own['PATH']}"
    return {**own, "PATH": path, "RINGLET_JOB_ID": str(uuid.uuid4()), **others}


def run(folder: Path, command: list[str], **environ: str) -> tuple[str, str]:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, **environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout, done.stderr


# --- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("command", "printed"), sessions(DOCUMENT))
def test_a_command_prints_what_is_shown(tried, command, printed):
    found, errors = tried[command].result(2 * SECONDS)
    assert sorted(found.splitlines()) == sorted(printed.splitlines()), errors  # workers print when they are ready


@pytest.mark.slow
def test_the_program_of_readme_runs_as_processes(tmp_path):
    program = re.search(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1]
    printed = re.search(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1]
    assert "ringlet.MirroredStrategy(2)" in program
    assert "`MultiWorkerMirroredStrategy()` in place of\n`MirroredStrategy(2)`, started by `ringlet run -n 2`" in README
    folder = filled(tmp_path)
    processes = program.replace("ringlet.MirroredStrategy(2)", "ringlet.MultiWorkerMirroredStrategy()")
    (folder / "program.py").write_text(processes, encoding="utf-8")
    output, _ = run(folder, ["ringlet", "run", "-n", "2", "program.py"])
    lines = [f"[w{worker}] {line}" for worker in range(2) for line in printed.splitlines()]
    assert sorted(output.splitlines()) == sorted(lines)


@pytest.mark.slow
def test_the_program_runs_as_a_step_of_slurm(tmp_path):
    folder = filled(tmp_path)
    line = re.search(r"^strategy = .*SlurmClusterResolver.*$", DOCUMENT, re.MULTILINE)[0]
    program = re.sub(r"^strategy = .*$", line, program_of(DOCUMENT), flags=re.MULTILINE)
    (folder / "sum_slurm.py").write_text(program, encoding="utf-8")
    step = {
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "n7",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "RINGLET_JOB_ID": str(uuid.uuid4()),
    }
    results = together(
        [partial(run, folder, ["python", "sum_slurm.py"], SLURM_PROCID=str(index), **step) for index in range(2)]
    )
    assert [printed for printed, _ in results] == ["15\n51\n"] * 2, results


# --- failures ---------------------------------------------------------------------------------------------------------

HEAD = "import os, sys, time\nimport numpy as np\nimport ringlet\nstrategy = ringlet.MultiWorkerMirroredStrategy()\n"
# `me` is the number of the worker; both workers have started.
MEET = HEAD + "me = strategy.cluster_resolver.task_id\nstrategy.extended._workers.barrier('start')\n"
ADD = "strategy.run(lambda x: ringlet.get_replica_context().all_reduce('SUM', x), args=({},))\n"


def config(*, cluster: Any = CLUSTER, **task: Any) -> str:
    return json.dumps({"cluster": cluster, **({"task": task} if task else {})})


def together(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Make calls at the same time, and return their results."""
    with ThreadPoolExecutor() as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


def alone(text: str) -> Callable[[Path], str]:
    """Error of a process with this ``TF_CONFIG`` that needs the other workers at once."""

    def said(folder: Path) -> str:
        (folder / "sum.py").write_text(MEET, encoding="utf-8")
        return run(folder, ["python", "sum.py"], TF_CONFIG=text, RINGLET_TIMEOUT_SECONDS="1")[1]

    return said


def read(text: str) -> Callable[[Path], str]:
    """Error of a strategy that is made with this ``TF_CONFIG``, in this process."""

    def said(folder: Path) -> str:
        resolver = ringlet.cluster_resolver.TFConfigClusterResolver(environ={"TF_CONFIG": text})
        with pytest.raises(ringlet.errors.ClusterConfigError) as caught:
            ringlet.MultiWorkerMirroredStrategy(resolver)
        return str(caught.value)

    return said


def workers(program: str, *others: tuple[int, dict[str, str]], other_program: str = "") -> Callable[[Path], str]:
    """Errors of two workers, or of those that `others` lists by number."""

    def said(folder: Path) -> str:
        (folder / "sum.py").write_text(program, encoding="utf-8")
        (folder / "other.py").write_text(other_program, encoding="utf-8")
        job = {"RINGLET_TIMEOUT_SECONDS": str(SECONDS), "RINGLET_JOB_ID": str(uuid.uuid4())}
        calls = [
            partial(
                run,
                folder,
                ["python", "other.py" if other_program and index else "sum.py"],
                **{**job, "TF_CONFIG": config(type="worker", index=index), **environ},
            )
            for index, environ in others or ((0, {}), (1, {}))
        ]
        return "\n".join(errors for _, errors in together(calls))

    return said


def too_long(folder: Path) -> str:
    text = config(cluster={"worker": [f"localhost:{port}" for port in range(20_000)]})
    try:
        run(folder, ["python", "sum.py"], TF_CONFIG=text)
    except OSError as error:
        return str(error)
    return ""


def outside_slurm(folder: Path) -> str:
    return run(folder, ["python", "-c", "import ringlet; ringlet.cluster_resolver.SlurmClusterResolver()"])[1]


AT_EXIT = "import atexit, pathlib\natexit.register(pathlib.Path('ended').touch)\n"
OLD = "import ringlet.version\nringlet.version.__version__ = '0.0.1'\n"

# Heading of the document: the call that fails that way.
FAILURES: dict[str, Callable[[Path], str]] = {
    "`TF_CONFIG` is not valid JSON": read("{'cluster': {}}"),
    "`TF_CONFIG` has an invalid value": read(config(cluster={"worker": "localhost:2222"}, type="worker", index=0)),
    "`TF_CONFIG` has a misspelt key": read(json.dumps({"clusters": CLUSTER, "task": {"type": "worker", "index": 0}})),
    "The task does not exist": read(config(type="worker", index=5)),
    "The task of the process is not given": read(config()),
    "The task type does not run replicas": read(config(cluster={**CLUSTER, "ps": ["localhost:9"]}, type="ps", index=0)),
    "Two workers have one address": read(config(cluster={"worker": ["localhost:2222"] * 2}, type="worker", index=0)),
    "A worker does not start": alone(config(type="worker", index=0)),
    "The workers have different clusters": workers(
        MEET,
        (0, {}),
        (1, {"TF_CONFIG": config(cluster={"worker": [*CLUSTER["worker"], "localhost:9"]}, type="worker", index=1)}),
    ),
    "A task is started twice, or two jobs have the same cluster": workers(
        AT_EXIT + MEET + "while not os.path.exists('ended'): time.sleep(0.05)\n", (0, {}), (1, {}), (1, {})
    ),
    "The workers have different numbers of replicas": workers(MEET, (0, {}), (1, {"RINGLET_NUM_DEVICES": "2"})),
    "The workers have different versions of Ringlet": workers(
        MEET, (0, {"RINGLET_TIMEOUT_SECONDS": "5"}), (1, {}), other_program=OLD + MEET
    ),
    "The workers run different programs": workers(MEET, other_program=f"# another\n{MEET}"),
    "The cluster names other machines": alone(
        config(cluster={"worker": ["localhost:2222", "203.0.113.7:2223"]}, type="worker", index=0)
    ),
    "A worker raises an exception": workers(MEET + "if me: raise KeyError('weights')\n" + ADD.format("1.0")),
    "A worker ends before the others": workers(MEET + "if me: sys.exit()\n" + ADD.format("1.0")),
    "A worker is killed": workers(MEET + "if me: os.kill(os.getpid(), 9)\n" + ADD.format("1.0")),
    "A worker is stuck": workers(
        MEET + "if me: time.sleep(6)\n" + ADD.format("1.0"),
        (0, {"RINGLET_TIMEOUT_SECONDS": "4"}),
        (1, {"RINGLET_TIMEOUT_SECONDS": "4"}),
    ),
    "The workers do not make the same calls": workers(MEET + ADD.format("np.ones(2 + me)")),
    "The program does not run in a Slurm step": outside_slurm,
    "`TF_CONFIG` is too long for a program": too_long,
}


ENDS_SOMEHOW = "closed its connection to this group|ended; the system does not report how"


def pattern_of(message: str) -> str:
    """Return a shown message as a pattern: process, machine, folder and numbers of calls vary between runs."""
    pattern = re.escape(" ".join(message.split()))
    for shown, real in (
        (r"pid\ 812", r"pid\ \d+"),
        (r"pid\ 813", r"pid\ \d+"),
        (r"on\ node7", r"on\ \S+"),
        (r"\(sum\.py:6\)", r"\(\S*sum\.py:\d+\)"),
        (r"call\ 1\ of", r"call\ \d+\ of"),
        (r"call\ number\ 1", r"call\ number\ \d+"),
        (r"waited\ 1\ s", r"waited\ \d+\ s"),
        (r"started\ 1\ s\ ago", r"started\ \d+\ s\ ago"),
        # The status may be read while a process is ending, or, on older systems, after its parent has reaped it.
        (r"exited\ with\ status\ 0", rf"(exited with status 0|{ENDS_SOMEHOW})"),
        (r"was\ killed\ by\ SIGKILL\ \(signal\ 9\)", rf"(was killed by SIGKILL \(signal 9\)|{ENDS_SOMEHOW})"),
    ):
        pattern = pattern.replace(shown, real)
    return pattern


def shown_failures() -> dict[str, str]:
    """Return each heading of the last part with its message."""
    part = DOCUMENT.partition("## What can go wrong")[2]
    return dict(re.findall(r"^### ([^\n]*)\n\n```text\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("heading", FAILURES)
def test_a_failure_has_the_message_that_is_shown(tried, heading):
    said = " ".join(tried[heading].result(2 * SECONDS).split())
    said = re.sub(r" \(RINGLET_JOB_ID '[^']*'\)", "", said)
    assert re.search(pattern_of(shown_failures()[heading]), said), said


def test_every_failure_that_is_shown_is_tried():
    assert shown_failures().keys() == FAILURES.keys()
