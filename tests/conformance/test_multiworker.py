"""The processes of a MultiWorkerMirroredStrategy answer what TensorFlow's answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_multiworker.py, from clusters of two workers, three workers, and a
chief with a worker, each with one replica. Here the workers are processes, too: one set for all cases of a cluster.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.common import case_id, is_incidental, load

ROOT = Path(__file__).resolve().parents[2]
CASES = load("multiworker")


def environments(cluster: dict[str, int]) -> list[dict[str, str]]:
    """The environment of each worker, in the order of their ranks."""
    ports = iter(range(20000, 21000))
    addresses = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in cluster.items()}
    job_id = f"conformance {uuid.uuid4()}"
    return [
        {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": job, "index": index}}),
            "RINGLET_JOB_ID": job_id,
        }
        for job in sorted(cluster)  # the chief comes before the workers
        for index in range(cluster[job])
    ]


@functools.cache
def problems_of(shape: str) -> list[dict[str, str | None]]:
    """What each worker of a cluster found wrong with its cases."""
    command = [sys.executable, "-m", "tests.conformance.multiworker_cases"]
    started = [
        subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for env in environments(json.loads(shape))
    ]
    try:
        told = [process.communicate(timeout=60) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert [process.returncode for process in started] == [0] * len(started), told
    return [json.loads(output) for output, _ in told]


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    problems = problems_of(json.dumps(case["input"]["cluster"]))
    assert [worker[case["id"]] for worker in problems] == [None] * len(problems)


def test_cases_are_counted(capsys):
    shapes = collections.Counter(json.dumps(case["input"]["cluster"]) for case in CASES)
    counts = ", ".join(f"{shape} {count}" for shape, count in sorted(shapes.items()))
    outcomes: list[dict[str, Any]] = [case["expect"] for case in CASES]
    accidents = sum(map(is_incidental, outcomes))
    with capsys.disabled():
        print(f"\nrecorded cases of several workers: {len(CASES)} of {len(CASES)} compared, none differs on purpose")
        print(f"by cluster: {counts}; {accidents} are incidental errors, for which anything will do")
    assert CASES
