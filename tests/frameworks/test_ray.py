"""Collective groups of Ray over the ringlet backend: every call, groups made in both ways, errors, a killed actor."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks.libraries import library

ray = library("ray")


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def actors(count):
    @ray.remote(num_cpus=0)
    class Actor:
        def __init__(self):
            import ringlet.ray  # noqa: F401 - registers the backend

        def pid(self):
            return os.getpid()

        def join(self, size, rank, name):
            from ray.util import collective

            collective.init_collective_group(size, rank, backend="ringlet", group_name=name)

        def run(self, step, *args):
            return step(*args)

    return [Actor.remote() for _ in range(count)]


def on_all(members, step, *args):
    return ray.get([member.run.remote(step, rank, *args) for rank, member in enumerate(members)], timeout=60)


def joined(count, name):
    members = actors(count)
    ray.get([member.join.remote(count, rank, name) for rank, member in enumerate(members)], timeout=60)
    return members


def every_call(rank, name):
    from ray.util import collective
    from ray.util.collective.types import ReduceOp

    found = []
    for op in (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX):
        x = np.array([rank + 1.0, 2])
        collective.allreduce(x, name, op)
        found.append(x.tolist())
    x = np.full((2, 2), rank).T
    collective.reduce(x, 1, name)
    found.append(x.tolist())
    x = np.array(rank)
    collective.broadcast(x, 2, name)
    found.append(x.item())
    outs = [np.zeros((number + 1, 2), int) for number in range(3)]
    collective.allgather(outs, np.full((rank + 1, 2), rank), name)
    found.append([out.tolist() for out in outs])
    out = np.zeros((1, 2))
    collective.reducescatter(out, [np.full((1, 2), 10.0 * number + rank) for number in range(3)], name)
    found.append(out.tolist())
    if rank < 2:
        x = np.full(50_000, rank)
        if rank:
            collective.send(x, 0, name)
        else:
            collective.recv(x, 1, name)
        found.append(x[-1].item())
    collective.barrier(name)
    return found, collective.get_rank(name), collective.get_collective_group_size(name)


def test_every_call_has_its_result(cluster):
    for rank, (found, own, size) in enumerate(on_all(joined(3, "calls"), every_call, "calls")):
        assert (own, size) == (rank, 3)
        assert found[:4] == [[6, 6], [6, 8], [1, 2], [3, 2]]
        assert found[4] == [[3, 3]] * 2 if rank == 1 else found[4] == [[rank, rank]] * 2
        assert found[5] == 2
        assert found[6] == [[[number] * 2] * (number + 1) for number in range(3)]
        assert found[7] == [[30 * rank + 3] * 2]
        assert found[8:] == [[1], [1], []][rank]


def total(rank, name):
    from ray.util import collective

    x = np.ones(3)
    collective.allreduce(x, name)
    return x.tolist()


def test_a_group_is_declared_by_the_driver(cluster):
    from ray.util import collective

    import ringlet.ray  # noqa: F401

    members = actors(2)
    collective.create_collective_group(members, 2, [0, 1], backend="ringlet", group_name="declared")
    assert on_all(members, total, "declared") == [[2, 2, 2]] * 2


def test_a_group_is_made_and_destroyed_by_the_driver_many_times(cluster):
    library("torch")  # this module of Ray imports it
    from ray.experimental import collective

    import ringlet.ray  # noqa: F401

    members = actors(2)
    for _ in range(3):
        group = collective.create_collective_group(members, backend="ringlet", name="again")
        assert on_all(members, total, "again") == [[2, 2, 2]] * 2
        collective.destroy_collective_group(group)


def test_tensors_are_combined_in_place(cluster):
    library("torch")

    def step(rank, name):
        import torch
        from ray.util import collective

        x = torch.full((3,), rank + 1.0, dtype=torch.bfloat16)
        collective.allreduce(x, name)
        outs = [torch.zeros(1, 3) for _ in range(2)]
        collective.allgather(outs, torch.full((1, 3), float(rank)), name)
        return x.tolist(), [out.tolist() for out in outs]

    assert on_all(joined(2, "tensors"), step, "tensors") == [([3] * 3, [[[0] * 3], [[1] * 3]])] * 2


def test_wrong_sizes_are_errors_that_leave_the_group_usable(cluster):
    def step(rank, name):
        from ray.util import collective

        texts = []
        for call in (
            lambda: collective.allgather([np.zeros(2), np.zeros(3)], np.zeros(2), name),
            lambda: collective.reducescatter(np.zeros(2), [np.zeros(2), np.zeros(3)], name),
            lambda: collective.get_group_handle(name).allreduce([np.zeros(2)] * 2),
        ):
            try:
                call()
            except ValueError as error:
                texts.append(str(error))
        x = np.ones(1)
        collective.allreduce(x, name)
        return texts, x.item()

    for texts, total in on_all(joined(2, "wrong"), step, "wrong"):
        assert total == 2
        for text, part in zip(texts, ("hold [2, 3]", "blocks of [2, 3]", "a list of 2 arrays"), strict=True):
            assert part in text


def test_an_actor_that_is_killed_is_named_by_the_others_within_a_second(cluster):
    from ringlet.errors import WorkerLostError

    members = joined(2, "killed")
    pid = ray.get(members[1].pid.remote())

    def wait(rank, name):
        from ray.util import collective

        collective.allreduce(np.ones(3), name)

    waits = members[0].run.remote(wait, 0, "killed")
    time.sleep(0.3)
    started = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerLostError, match=rf"rank 1 \(pid {pid} on .*SIGKILL") as raised:
        ray.get(waits, timeout=20)
    assert time.monotonic() - started < 3
    assert raised.value.rank == 1

    def again(rank):
        from ray.util import collective

        collective.destroy_collective_group("killed")
        collective.init_collective_group(2, rank, backend="ringlet", group_name="killed")

    (other,) = actors(1)
    ray.get([members[0].run.remote(again, 0), other.join.remote(2, 1, "killed")], timeout=60)
    assert on_all([members[0], other], total, "killed") == [[2, 2, 2]] * 2


def test_a_rank_that_does_not_join_is_named(cluster, monkeypatch):
    def join(rank):
        os.environ["RINGLET_TIMEOUT_SECONDS"] = "0.5"
        from ray.util import collective

        collective.init_collective_group(2, 1, backend="ringlet", group_name="alone")

    with pytest.raises(TimeoutError, match="rank 0 of 2 did not join the group within"):
        ray.get(actors(1)[0].run.remote(join, 0), timeout=30)


def test_the_program_of_the_page_prints_what_the_page_shows(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "ray.md").read_text(encoding="utf-8")
    program, printed = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("py", "text"))
    script = tmp_path / "sum.py"
    script.write_text(program, encoding="utf-8")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout.endswith(printed), ended.stderr


def test_docstrings_run(cluster):
    import ringlet.ray

    failures, examples = doctest.testmod(ringlet.ray)
    assert (failures, examples > 3) == (0, True)


def test_without_ray_the_error_says_how_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ringlet.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'ringlet\[ray\]'"):
        import ringlet.ray  # noqa: F401
