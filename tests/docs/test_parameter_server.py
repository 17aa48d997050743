"""Commands and failures of docs/parameter_server.md: each is run, and prints the text that is shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "parameter_server.md").read_text(encoding="utf-8")
SECONDS = 90

HEAD = """
import os, sys, threading
import ringlet

def start(**options):
    strategy = ringlet.ParameterServerStrategy(
        ringlet.cluster_resolver.LocalClusterResolver(workers=1, ps=2), **options
    )
    return strategy, ringlet.coordinator.ClusterCoordinator(strategy)

def run(step, *args):
    coordinator.schedule(step, args=args)
    coordinator.join()

def said(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""

# Heading of the document: the call that fails that way, in a program that has started a cluster.
CALLS = {
    "Part of a function cannot be sent": """
lock = threading.Lock()
def step():
    with lock:
        pass
said(lambda: run(step))
""",
    "An argument is not ready": "said(lambda: run(len, coordinator.schedule(len, args=([],))))\n",
    "A function makes a variable": "said(lambda: run(lambda: ringlet.Variable(1.0)))\n",
    "A function ends every worker that runs it": "def step(): os._exit(3)\nsaid(lambda: run(step))\n",
    # Of another length: otherwise Python may use the bytecode of the first version.
    "A worker has different code": """
with open("steps.py", "w") as file:
    file.write("def step(): return 1")
import steps
with open("steps.py", "w") as file:
    file.write("def step(): return 'other'")
said(lambda: run(steps.step))
""",
    "A worker does not find a module": """
with open("moved.py", "w") as file:
    file.write("def step(): return 1")
import moved
os.remove("moved.py")
said(lambda: run(moved.step))
""",
    "A dataset has ended": """
batches = iter(coordinator.create_per_worker_dataset(ringlet.data.Dataset.range(1)))
said(lambda: [run(next, batches) for _ in range(2)])
""",
    "cloudpickle is not installed": """
sys.modules["cloudpickle"] = None
step = lambda: 1
said(lambda: run(step))
""",
    "A partitioner does not cut along the rows": """
other, _ = start(variable_partitioner=lambda shape, dtype: [2, 2])
with other.scope():
    said(lambda: ringlet.Variable([[1.0, 2.0], [3.0, 4.0]]))
""",
    "The coordinator was shut down": "coordinator.shutdown()\nsaid(lambda: run(len, []))\n",
}
KILLED = """
os.kill(strategy.extended._cluster().pid_of("ps", 1), 9)
def for_ever():
    while True:
        run(len, [])
said(for_ever)
"""
CLUSTER = """
import ringlet
cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
def resolver(type, **cluster):
    return ringlet.cluster_resolver.SimpleClusterResolver(ringlet.train.ClusterSpec(cluster), task_type=type, task_id=0)
"""
PROGRAMS = {
    "A parameter server was killed": HEAD + "strategy, coordinator = start()\n" + KILLED,
    "The cluster has no parameter server": CLUSTER
    + "cluster.pop('ps')\nringlet.ParameterServerStrategy(resolver('chief', **cluster))\n",
    "A server does not start": CLUSTER
    + "strategy = ringlet.ParameterServerStrategy(resolver('chief', **cluster))\n"
    + "with strategy.scope(): ringlet.Variable(1)\n",
    "The secret is missing": CLUSTER
    + "cluster['ps'] = ['198.51.100.7:2222']\nringlet.Server(cluster, job_name='worker', task_index=0)\n",
    "The secrets differ": CLUSTER
    + "import os; os.environ['RINGLET_SECRET'] = 'the secret of the worker'\n"
    + "cluster['worker'] = ['localhost:2221']; ringlet.Server(cluster, job_name='worker', task_index=0)\n"
    + "os.environ['RINGLET_SECRET'] = 'the secret of the coordinator'\n"
    + "with ringlet.ParameterServerStrategy(resolver('chief', **cluster)).scope(): ringlet.Variable(1)\n",
    "The coordinator does not start": CLUSTER + "ringlet.Server(cluster, job_name='worker', task_index=0).join()\n",
}


def run(folder: Path, command: list[str], **environ: str) -> tuple[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("RINGLET_", "TF_"))}
    path = f"{folder}:{own['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**own, "PATH": path, "RINGLET_JOB_ID": str(uuid.uuid4()), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Output of each failure: most of them in one program, the others at the same time."""
    all_calls = "".join(f"print({heading!r})\n{call}" for heading, call in CALLS.items())
    together = HEAD + "strategy, coordinator = start()\n" + all_calls
    folder = tmp_path_factory.mktemp("programs")
    files = []
    for number, program in enumerate([together, *PROGRAMS.values()]):
        files.append(folder / f"program{number}.py")
        files[-1].write_text(program, encoding="utf-8")

    def output_of(file: Path) -> str:
        limit = {} if file == files[0] else {"RINGLET_TIMEOUT_SECONDS": "1" if "program1" not in file.name else "60"}
        return "\n".join(run(folder, [sys.executable, file.name], **limit))

    with ThreadPoolExecutor(2) as threads:
        first, *others = threads.map(output_of, files)
    found = dict(zip(PROGRAMS, others, strict=True))
    for heading in CALLS:
        found[heading] = first.partition(f"{heading}\n")[2].partition("\n")[0] or first
    return found


def shown_failures() -> dict[str, str]:
    """Return each heading of the last part with its message."""
    part = DOCUMENT.partition("## What can go wrong")[2]
    return dict(re.findall(r"^### ([^\n]*)\n\n```text\n(.*?)^```$", part, re.MULTILINE | re.DOTALL))


def pattern_of(message: str) -> str:
    """Return a shown message as a pattern: process and machine vary between runs."""
    pattern = re.escape(" ".join(message.split()))
    for shown, real in ((r"pid\ 812", r"pid\ \d+"), (r"on\ node7", r"on\ \S+"), (r"waited\ 1\ s", r"waited\ \d+\ s")):
        pattern = pattern.replace(shown, real)
    return pattern


@pytest.mark.slow
@pytest.mark.parametrize("heading", [*CALLS, *PROGRAMS])
def test_a_failure_has_the_message_that_is_shown(said, heading):
    text = re.sub(r" \(RINGLET_JOB_ID '[^']*'\)", "", " ".join(said[heading].split()))
    assert re.search(pattern_of(shown_failures()[heading]), text), text


def test_every_failure_that_is_shown_is_tried():
    assert shown_failures().keys() == {*CALLS, *PROGRAMS}


@pytest.mark.slow
def test_processes_that_somebody_else_starts_do_the_work(tmp_path):
    for name in ("server", "chief"):
        program = re.search(rf"^```py\n(# {name}\.py\n.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)[1]
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    block = re.search(r"^```console\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)[1]
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    printed, errors = run(tmp_path, ["bash", "-c", "\n".join(commands)])
    assert printed == block.splitlines()[-1] + "\n", errors
