"""Errors of the ringlet backend: lost ranks, mismatches, wrong tensors, wrong worlds."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest

from ringlet.errors import CollectiveMismatchError, DeadlineExceededError
from ringlet.rendezvous.process_identity import ProcessIdentity
from tests.frameworks.libraries import library
from tests.frameworks.torch_ranks import run_ranks

torch = library("torch")
dist = torch.distributed


def lost(rank, size, where):
    """The last rank is killed while the others wait for it; return their errors and how long they took."""
    model = torch.nn.Sequential(torch.nn.Linear(500, 500), torch.nn.Linear(500, 500))
    if where == "backward":
        model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    group = dist.new_group([1, size - 1])
    dist.barrier()
    started = time.monotonic()
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    calls = {
        "backward": lambda: model(torch.ones(2, 500)).sum().backward(),
        "sync": lambda: dist.all_reduce(torch.ones(10)),
        "async": lambda: dist.all_reduce(torch.ones(1 << 20), async_op=True).wait(),
        "recv": lambda: dist.recv(torch.ones(3), size - 1),
        "send": lambda: [dist.send(torch.ones(100_000), size - 1) for _ in range(100)],
        "subgroup": lambda: dist.all_reduce(torch.ones(3), group=group) if rank else dist.barrier(),
    }
    with pytest.raises(dist.DistBackendError) as raised:
        calls[where]()
    error = raised.value
    return str(error), time.monotonic() - started, [getattr(error, name, None) for name in ("rank", "host", "pid")]


def late(rank, size, how):
    """Rank 1 comes late to a call of a new group, until this is reported; return the warnings of this rank."""
    import logging

    released = []
    signal.signal(signal.SIGUSR1, lambda *_: released.append(True))
    pids = [torch.tensor([0]) for _ in range(size)]
    dist.all_gather(pids, torch.tensor([os.getpid()]))
    records = []

    def emit(record):
        records.append(record.getMessage())
        os.kill(int(pids[1]), signal.SIGCONT if how == "stop" else signal.SIGUSR1)

    handler = logging.Handler()
    handler.emit = emit
    logging.getLogger("ringlet.observe.stall_reports").addHandler(handler)
    os.environ["RINGLET_STALL_SECONDS"] = "0.5"
    group = dist.new_group(timeout=timedelta(seconds=10.5))  # the report comes within 10 s of its limit

    def load_batch():
        while not released:
            time.sleep(0.01)

    if rank == 1 and how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif rank == 1:
        load_batch()
    dist.all_reduce(torch.ones(3), group=group)
    return records


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("sleep", "in load_batch: time.sleep(0.01)"),
        ("stop", "rank 1: stopped, by a signal or a debugger"),
    ],
)
def test_a_late_rank_is_reported_with_the_lines_of_all_ranks(how, expected):
    (text,) = [text for records in run_ranks(late, 3, how) for text in records]
    missing, waiting = text.split("waiting in this call")
    assert "has waited 0.5 s for rank 1 (pid " in missing
    assert "The call fails after 10.5 s (timeout= of init_process_group or new_group)." in waiting
    assert expected in missing
    assert "dist.all_reduce(torch.ones(3), group=group)" in waiting


@pytest.mark.parametrize("where", ["subgroup", "sync", "async", "recv", "send", "backward"])
def test_a_killed_rank_is_named_by_all_others(where):
    *answers, killed = run_ranks(lost, 3, where)
    assert killed is None
    for text, seconds, (rank, host, pid) in answers:
        assert "rank 2" in text
        assert "SIGKILL" in text
        assert seconds < 3
        assert (rank, host) == (2, os.uname().nodename)
        assert pid > 0


def wrong_calls(rank, size):
    for tensor, said in (
        (torch.zeros(2, device="meta"), "a tensor on meta"),
        (torch.zeros(2, 2).to_sparse(), "to_dense"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "dequantize"),
    ):
        for call in (
            lambda x: dist.all_reduce(x, dist.ReduceOp.MAX),
            lambda x: dist.broadcast(x, 0),
            lambda x: dist.send(x, 1 - rank),
        ):
            with pytest.raises(ValueError, match=said):
                call(tensor)
    with pytest.raises(ValueError, match="AND does not support float32"):
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)
    with pytest.raises(ValueError, match="expected one for each of 2 ranks"):
        dist.all_gather([torch.zeros(1)], torch.zeros(1))
    with pytest.raises(ValueError, match="the whole tensor has 3 elements, expected 4"):
        dist.all_gather_single(torch.zeros(3), torch.zeros(2))
    with pytest.raises(ValueError, match="output_split_sizes"):
        dist.all_to_all_single(torch.zeros(3), torch.zeros(4), [1, 1], [2, 2])
    group, x, y = dist.group.WORLD, torch.zeros(1), torch.zeros(1, dtype=torch.float64)
    for call, said in (
        (lambda: group.allreduce([x, x]), "all_reduce got a list of 2 tensors: pass one tensor"),
        (lambda: group.allreduce_coalesced([]), "all_reduce_coalesced got 0 tensors"),
        (lambda: group.broadcast(x, root=-1), "broadcast got the root -1: expected a rank from 0 to 1"),
        (lambda: group.broadcast([], root=0), "broadcast got a list of 0"),
        (lambda: group.allgather([[x, x]], [x, x]), "all_gather got a list of 2"),
        (lambda: group.allgather([[x, y]], [x]), "all_gather got tensors of torch.float32 and torch.float64"),
        (lambda: group.allgather_coalesced([[x], [y]], [x]), "all_gather_coalesced got tensors of torch.float32 and"),
        (lambda: group.gather([[x, y]], [x], root=rank), "gather got tensors of torch.float32 and torch.float64"),
        (lambda: group.gather([], [x], root=rank), "gather got 0 output tensors"),
        (lambda: group.scatter([x], [[x, x]], root=1 - rank), f"scatter got input tensors on rank {rank}: pass them"),
        (lambda: group.alltoall([x, x], [y, y]), "all_to_all got tensors of torch.float32 and torch.float64"),
        (lambda: group.alltoall_base(x, y, [1, 0], [1, 0]), "all_to_all got tensors of torch.float32 and"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(ValueError, match="another rank passed one with a different shape or"):
        dist.all_reduce(torch.ones(2, 3 + rank).to_sparse())
    dist.all_reduce(torch.ones(1))  # the group is usable
    with pytest.raises(NotImplementedError, match="timeout="):
        dist.group.WORLD.set_timeout(timedelta(seconds=3))
    dist.group.WORLD.monitored_barrier(timedelta(seconds=20))
    if rank == 0:
        late = r"rank 0 waited 0\.2 s in monitored_barrier for ranks \[1\]\. Check what they execute, or allow"
        with pytest.raises(dist.DistBackendError, match=rf"{late} more time with timeout=\."):
            dist.group.WORLD.monitored_barrier(timedelta(seconds=0.2))
    dist.barrier()
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    else:
        try:
            dist.all_reduce(torch.ones(1))
        except dist.DistBackendError as error:
            os._exit(0 if f"the process group belongs to the parent, process {os.getppid()}. Call" in str(error) else 1)
        os._exit(2)
    with pytest.raises(dist.DistBackendError) as raised:
        dist.all_reduce(torch.ones(2 + rank))
    assert "rank 0: all_reduce(SUM, float32[2]" in str(raised.value)
    assert "rank 1: all_reduce(SUM, float32[3]" in str(raised.value)
    group = dist.group.WORLD
    dist.destroy_process_group()
    with pytest.raises(dist.DistBackendError, match="was destroyed"):
        group.allreduce([torch.ones(1)])
    group.shutdown()
    with pytest.raises(AssertionError):
        dist.destroy_process_group()
    return True


def test_the_remedy_of_a_time_out_is_that_of_torch():
    from ringlet.torch.works import backend_error

    late = DeadlineExceededError(
        "waited for rank 1.\nAllow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS."
    )
    assert str(backend_error(late)).endswith("Allow more time with timeout= of init_process_group or new_group.")


def test_an_error_names_the_call_as_the_program_wrote_it():
    from ringlet.torch.works import backend_error

    cause = CollectiveMismatchError("rank 0: all_reduce(SUM, float32[3], out=), in <module> (a.py:9)")
    found = backend_error(cause)
    assert str(found) == "CollectiveMismatchError: rank 0: all_reduce(SUM, float32[3]), in <module> (a.py:9)"
    assert found.__context__ is cause


def test_an_operation_that_has_failed_before_its_future_is_asked_for_fails_the_backward_pass():
    from ringlet.collectives.operation_queue import Finished
    from ringlet.torch.works import RingletWork

    failed = RingletWork(Finished(None, dist.DistBackendError("rank 1 is lost")), [])
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda gradient: failed.get_future() and None)
    with pytest.raises(dist.DistBackendError, match="rank 1 is lost"):
        (2 * x).sum().backward()


def wrong_sizes(rank, size):
    """Rank 0 takes blocks of other sizes than the ranks send, with the same total; the others are right."""
    sizes, wrong = [2, 3, 4], [2, 4, 3]
    mine = torch.full((sizes[rank],), float(rank))
    outputs = [torch.zeros(count) for count in (sizes if rank else wrong)]
    ones, twos = torch.ones(size), torch.zeros(size)
    calls = [
        lambda: dist.all_gather(outputs, mine),
        lambda: dist.gather(mine, None if rank else outputs),
        lambda: dist.all_to_all(
            [torch.zeros(count) for count in ([1, 1, 1] if rank else [2, 0, 1])], list(torch.ones(size).split(1))
        ),
        lambda: dist.all_to_all_single(twos, ones, [1, 1, 1] if rank else [2, 1, 0], [1, 1, 1]),
    ]
    for call in calls:
        if rank:
            call()
        else:
            with pytest.raises(ValueError, match=r"ranks 0 to 2 sent \[.*\] items, but the outputs hold"):
                call()
    total = torch.ones(1)
    dist.all_reduce(total)
    return total.item()  # the group stays usable


def test_blocks_of_wrong_sizes_are_errors_even_if_the_total_is_right():
    assert run_ranks(wrong_sizes, 3) == [3.0] * 3


def test_wrong_calls_are_errors_that_name_the_remedy():
    assert run_ranks(wrong_calls, 2) == [True, True]


def aborts(rank, size):
    if rank == 0:
        work = dist.irecv(torch.ones(1), 1)
        time.sleep(0.2)
        dist.group.WORLD.abort()
        with pytest.raises(dist.DistBackendError, match=r"rank 0 called abort\(\)"):
            work.wait(timedelta(seconds=5))
    with pytest.raises(dist.DistBackendError, match=r"rank 0 called abort\(\)"):
        dist.all_reduce(torch.ones(1))
    return True


def test_abort_ends_the_calls_of_all_ranks():
    assert run_ranks(aborts, 2) == [True, True]


# --- joining ----------------------------------------------------------------------------------------------------------


def join(store, rank, ranks=()):
    from ringlet.torch.store_rendezvous import exchange

    return exchange(store, rank, 2, timedelta(seconds=0.3), ranks)


def record(store, rank, process, user=None, ranks=()):
    import json

    fields = {"process": process.as_record(), "user": os.geteuid() if user is None else user, "key": "k"}
    fields |= {"ranks": [*ranks], "rank": [*ranks, 0, 1][rank]}
    store.add(f"ringlet/{rank}", 1)
    store.set(f"ringlet/1/{rank}", json.dumps(fields))


def changed(**fields):
    import dataclasses

    return dataclasses.replace(ProcessIdentity.of_this_process(), **fields)


def test_a_rank_that_leaves_at_once_is_an_error_of_the_first_call(monkeypatch):
    from ringlet.torch import backend

    def join_and_fail(*args):
        member = connect(*args)
        member._core.group.abort("rank 1 exited with status 81")
        return member

    connect = backend.join
    monkeypatch.setattr(backend, "join", join_and_fail)
    group = backend.RingletProcessGroup(dist.HashStore(), 0, 1, timedelta(seconds=5))
    with pytest.raises(dist.DistBackendError, match="rank 1 exited with status 81"):
        group.barrier().wait()
    group.shutdown()


def test_ranks_on_two_hosts_are_refused():
    store = dist.HashStore()
    record(store, 0, changed(host="node7", boot_id="another"))
    with pytest.raises(dist.DistBackendError, match=r"rank 0 on host node7 .*; rank 1 on host .*\"gloo\""):
        join(store, 1)


def test_ranks_of_two_users_are_refused():
    store = dist.HashStore()
    record(store, 0, changed(), user=12345)
    with pytest.raises(dist.DistBackendError, match="rank 0 on user id 12345"):
        join(store, 1)


def test_a_missing_rank_is_named():
    with pytest.raises(dist.DistBackendError, match=r"rank 1 of 2 did not join the group within 0.3 s"):
        join(dist.HashStore(), 0)


def test_a_rank_that_has_joined_already_is_refused():
    store = dist.HashStore()
    record(store, 1, ProcessIdentity(os.getppid(), _start(os.getppid()), *_rest()))
    with pytest.raises(dist.DistBackendError, match=rf"rank 1 has joined already, as pid {os.getppid()}"):
        join(store, 1)


def test_ranks_that_create_different_groups_are_refused():
    store = dist.HashStore()
    record(store, 0, ProcessIdentity.of_this_process(), ranks=[0, 2])
    with pytest.raises(dist.DistBackendError, match=r"rank 0 called new_group\(\[0, 2\]\), rank 1 .*\(\[0, 1\]\)"):
        join(store, 1, [0, 1])


def test_a_rank_of_another_group_is_no_second_process_of_the_same_rank():
    store = dist.HashStore()
    record(store, 1, ProcessIdentity(os.getppid(), _start(os.getppid()), *_rest()), ranks=[1, 2])
    with pytest.raises(dist.DistBackendError, match=r"rank 2 called new_group\(\[1, 2\]\), rank 1 .*\(\[0, 1\]\)"):
        join(store, 1, [0, 1])


@pytest.mark.parametrize("call", ["add", "set", "wait"])
def test_a_store_that_ended_with_its_process_is_named(call):
    def end(*args):
        raise dist.DistNetworkError("Broken pipe")

    store = SimpleNamespace(add=lambda key, number: 1, set=lambda *args: None, wait=lambda *args: None)
    setattr(store, call, end)
    with pytest.raises(dist.DistBackendError, match=r"the store has ended.*dist\.barrier\(\)"):
        join(store, 1)


def _start(pid):
    from ringlet.rendezvous import process_identity

    return process_identity.start_ticks(pid)


def _rest():
    mine = ProcessIdentity.of_this_process()
    return mine.host, mine.boot_id, mine.network_namespace, mine.pid_namespace


# --- the end of a program ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys, torch, torch.distributed as dist, ringlet.torch
rank = int(sys.argv[1])
dist.init_process_group("ringlet", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
x = torch.ones(3)
work = dist.all_reduce(x, async_op=True)
if rank == 0 or sys.argv[3] == "raises":
    work.wait()
if sys.argv[3] == "raises":
    if rank == 1:
        raise KeyError("weights")
    try:
        dist.barrier()
    except dist.DistBackendError as error:
        assert "rank 1 raised KeyError: 'weights'" in str(error), error
        assert x[0] == 2
        print("named")
"""


@pytest.mark.parametrize(("how", "codes"), [("raises", [0, 1]), ("returns", [0, 0])])
def test_a_program_that_ends_without_leaving_its_groups(how, codes, tmp_path):
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), str(tmp_path / "store"), how], text=True, stdout=subprocess.PIPE
        )
        for rank in range(2)
    ]
    printed = [rank.communicate(timeout=60)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == codes
    assert ("named" in printed[0]) == (how == "raises")


def raises_or_exits(rank, size, how):
    if rank == 1:
        raise KeyError("weights") if how == "raises" else SystemExit(3)
    reason = "raised KeyError" if how == "raises" else "exited with status 3"
    with pytest.raises(dist.DistBackendError, match=f"rank 1 {reason}"):
        dist.barrier()
    return True


@pytest.mark.parametrize("how", ["raises", "exits"])
def test_a_rank_of_multiprocessing_that_fails_names_the_reason(how):
    assert run_ranks(raises_or_exits, 2, how, codes=(0, 1, 3)) == [True, None]


def test_an_older_torch_is_refused(monkeypatch):
    import ringlet.torch

    monkeypatch.setattr(torch, "__version__", "2.5.1+cpu")
    with pytest.raises(ImportError, match=r"requires torch 2.6 or later, but torch 2.5.1\+cpu is installed"):
        importlib.reload(ringlet.torch)


def test_options_of_another_backend_are_refused():
    with pytest.raises(ValueError, match="pg_options is 'fast': the ringlet backend has no options"):
        dist.init_process_group("ringlet", store=dist.HashStore(), rank=0, world_size=1, pg_options="fast")


def test_a_backend_for_each_device_is_accepted_and_ringlet_takes_the_group():
    importlib.import_module("ringlet.torch")
    dist.init_process_group("cpu:ringlet,cuda:nccl", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.ones(2)
        dist.all_reduce(x)
        assert dist.get_backend() == "cpu:ringlet,cuda:nccl"
        with pytest.raises(ValueError, match="a tensor on meta: the ringlet backend supports tensors in CPU memory"):
            dist.all_reduce(x.to("meta"))
    finally:
        dist.destroy_process_group()


class _Barriers:
    """A process group as far as `monitored_barrier` needs it."""

    def __init__(self, store, key):
        self._store, self._key = store, key
        self._rank, self._size, self._seconds, self._global_ranks, self._barriers = 0, 2, 5, [0, 1], 0

    def _check_usable(self, call):
        pass


def test_a_monitored_barrier_does_not_count_ranks_of_an_earlier_group_on_the_store():
    from ringlet.torch.backend import RingletProcessGroup

    store = dist.HashStore()
    store.set("monitored_barrier/1/1", "")
    store.set("monitored_barrier/first/1/1", "")
    RingletProcessGroup.monitored_barrier(_Barriers(store, "first"))
    with pytest.raises(dist.DistBackendError, match=r"for ranks \[1\]"):
        RingletProcessGroup.monitored_barrier(_Barriers(store, "second"), timedelta(seconds=0.1))


@pytest.mark.parametrize("is_interactive", [False, True])
def test_an_error_of_an_earlier_input_is_no_reason_to_abort(is_interactive, monkeypatch):
    from ringlet.torch import backend

    class Group:
        _pid = os.getpid()
        reason = None

        def _abort(self, reason):
            self.reason = reason

        def _leave(self, seconds):
            pass

    group = Group()
    monkeypatch.setattr(backend, "_live", [group])
    monkeypatch.setattr(sys, "last_value", KeyError("old"), raising=False)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    backend._leave_groups()
    assert group.reason == (None if is_interactive else "raised KeyError: 'old'")
