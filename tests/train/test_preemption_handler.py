"""A signal to one worker saves the same step on all of them, nothing is lost or made twice, and the program exits."""

from __future__ import annotations

import errno
import os
import signal
import time

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.experimental import PreemptionCheckpointHandler, TerminationConfig
from ringlet.train import Checkpoint, CheckpointManager
from tests.strategy.workers import Failure


@pytest.fixture(autouse=True)
def _the_handler_of_the_tests_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def preempt():
    os.kill(os.getpid(), signal.SIGTERM)


def train(folder, *, preempted_at=-1, num_steps=10, config=None, between=-1, strategy=None):
    """Add 1 in every run; return the exit status, the total, and the runs that were counted."""
    with (strategy or ringlet.MirroredStrategy(1)).scope():
        total = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.MEAN)
    handler = PreemptionCheckpointHandler(None, Checkpoint(total=total), folder, config)

    def step(number):
        if number == preempted_at:
            preempt()
        if strategy is None:
            total.assign_add(1.0)
        else:
            strategy.run(lambda: total.assign_add(1.0))
        return number

    status = None
    try:
        for number in range(handler.total_run_calls, num_steps):
            assert handler.run(step, number) == number
            if number == between:
                preempt()
    except SystemExit as end:
        status = end.code
    return status, int(total), handler.total_run_calls


@pytest.mark.parametrize(("arguments", "saved"), [
    ({"preempted_at": 3}, 4),
    ({"between": 3}, 5),
    ({"preempted_at": 3, "between": 3}, 4),
    ({"preempted_at": 0}, 1),
])  # fmt: skip
def test_the_step_in_which_the_signal_arrives_is_the_last_one(tmp_path, arguments, saved):
    assert train(tmp_path, **arguments) == (42, saved, saved)
    assert train(tmp_path) == (None, 10, 10)


def test_a_signal_before_the_first_step_saves_after_it(tmp_path):
    handler = PreemptionCheckpointHandler(None, Checkpoint(total=ringlet.Variable(0)), tmp_path)
    preempt()
    assert handler.run(lambda: 7) == 7
    with pytest.raises(SystemExit):
        handler.run(lambda: 8)
    assert handler.total_run_calls == 1


def test_a_signal_in_the_last_step_lets_the_program_end(tmp_path):
    assert train(tmp_path, preempted_at=9) == (None, 10, 10)


def test_thread_replicas_are_saved(tmp_path):
    strategy = ringlet.MirroredStrategy(3)
    assert train(tmp_path, preempted_at=5, strategy=strategy) == (42, 6, 6)
    assert train(tmp_path, strategy=strategy) == (None, 10, 10)


def test_the_exit_function_is_called_after_the_save_and_may_return(tmp_path):
    saved = []
    config = TerminationConfig(exit_fn=lambda: saved.append(sorted(os.listdir(tmp_path))))
    assert train(tmp_path, preempted_at=2, between=6, config=config) == (None, 10, 10)
    # The second signal saves again.
    assert saved == [["checkpoint", "ckpt-1.safetensors"], ["checkpoint", "ckpt-2.safetensors"]]


def test_the_save_function_replaces_the_managers(tmp_path):
    calls = []
    config = TerminationConfig(save_fn=lambda *args, **kwargs: calls.append((args, kwargs)))
    handler = PreemptionCheckpointHandler(None, Checkpoint(total=ringlet.Variable(0)), tmp_path, config)
    preempt()
    with pytest.raises(SystemExit):
        handler.save_checkpoint_if_preempted(5, options=None)
    assert calls == [((5,), {"options": None})]
    assert os.listdir(tmp_path) == []


def test_in_a_grace_period_training_continues_and_saves_again_before_its_end(tmp_path):
    saved, total = [], ringlet.Variable(0)
    manager = CheckpointManager(Checkpoint(total=total), tmp_path, None)
    config = TerminationConfig(grace_period=2.0)
    handler = PreemptionCheckpointHandler(None, manager, None, config)

    def step():
        time.sleep(0.02)
        total.assign_add(1)

    def train():
        for _ in range(1000):
            handler.run(step)
            saved.append(len(manager.checkpoints))

    preempt()
    begin = time.monotonic()
    with pytest.raises(SystemExit):
        train()
    assert time.monotonic() - begin < 2.0
    assert len(manager.checkpoints) == 2
    assert saved.count(1) > 1
    again = ringlet.Variable(0)
    Checkpoint(total=again).restore(manager.latest_checkpoint).expect_partial()
    assert int(again) == int(total) == handler.total_run_calls


def test_a_loop_without_run_saves_the_step_that_it_has_made(tmp_path):
    total = ringlet.Variable(0)
    handler = PreemptionCheckpointHandler(None, Checkpoint(total=total), tmp_path)

    def train():
        for number in range(9):
            total.assign_add(1)
            if number == 3:
                preempt()
            handler.save_checkpoint_if_preempted()

    with pytest.raises(SystemExit):
        train()
    assert (int(total), handler.total_run_calls) == (4, 4)
    assert PreemptionCheckpointHandler(None, Checkpoint(total=total), tmp_path).total_run_calls == 4


def test_an_interval_of_the_manager_does_not_prevent_the_save(tmp_path):
    total = ringlet.Variable(0)
    manager = CheckpointManager(Checkpoint(total=total), tmp_path, 3, step_counter=total, checkpoint_interval=100)
    handler = PreemptionCheckpointHandler(None, manager)
    handler.run(total.assign_add, 1)
    manager.save()
    preempt()
    handler.run(total.assign_add, 1)
    with pytest.raises(SystemExit):
        handler.run(total.assign_add, 1)
    assert len(manager.checkpoints) == 2


def test_saves_of_the_program_hold_the_number_of_runs(tmp_path):
    manager = CheckpointManager(Checkpoint(), tmp_path, 3)
    handler = PreemptionCheckpointHandler(None, manager)
    for _ in range(3):
        handler.run(bool)
    manager.save()
    handler.run(bool)
    assert PreemptionCheckpointHandler(None, CheckpointManager(Checkpoint(), tmp_path, 3)).total_run_calls == 3


@pytest.mark.parametrize("is_distributed", [False, True])
@pytest.mark.parametrize("preempted_at", range(1, 12))
def test_a_batch_that_was_taken_for_the_next_run_is_taken_again(tmp_path, preempted_at, is_distributed):
    strategy = ringlet.MirroredStrategy(2)
    dataset = Dataset.range(20).shuffle(20, seed=3).batch(4).prefetch(2)
    dataset = strategy.distribute_dataset(dataset) if is_distributed else dataset
    rows, taken, checkpoint = [], [], Checkpoint(epoch=0)

    def start():
        """Continue two epochs of five batches, each with an iterator of its own."""
        checkpoint.data = iter(dataset)
        handler = PreemptionCheckpointHandler(None, checkpoint, tmp_path)
        while checkpoint.epoch < 2:
            for batch in checkpoint.data:
                taken.append(batch)
                if len(taken) == preempted_at:
                    preempt()
                handler.run(lambda batch=batch: rows.extend(np.concatenate(strategy.local_results(batch)).tolist()))
            checkpoint.epoch += 1
            checkpoint.data = iter(dataset)

    try:
        start()
    except SystemExit:
        start()
    assert len(rows) == 40
    assert sorted(rows) == sorted([*range(20), *range(20)])


def test_a_full_disk_leaves_the_last_checkpoint_and_the_error_names_it(tmp_path, monkeypatch):
    manager = CheckpointManager(Checkpoint(total=ringlet.Variable(0)), tmp_path, 1)
    handler = PreemptionCheckpointHandler(None, manager)
    manager.save()
    preempt()
    handler.run(bool)

    def fail(*arguments):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("ringlet.train.saving.write_file", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*Earlier files are unchanged") as caught:
        handler.run(bool)
    (note,) = caught.value.__notes__ if hasattr(caught.value, "__notes__") else [str(caught.value)]
    assert "termination was requested, but saving failed" in note
    assert f"{tmp_path}/ckpt-1" in note
    assert ringlet.train.latest_checkpoint(tmp_path) == f"{tmp_path}/ckpt-1"


def test_an_error_of_the_function_is_raised_and_not_counted(tmp_path):
    handler = PreemptionCheckpointHandler(None, Checkpoint(), tmp_path)
    with pytest.raises(ZeroDivisionError):
        handler.run(lambda: 1 // 0)
    assert handler.total_run_calls == 0
    with handler.watch_preemption_scope() as nothing:
        assert nothing is None


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="a checkpoint_dir must be passed as well"):
        PreemptionCheckpointHandler(None, Checkpoint())
    with pytest.raises(TypeError, match=r"checkpoint must be a ringlet\.train\.Checkpoint, got 3"):
        PreemptionCheckpointHandler(None, 3, tmp_path)
    handler = PreemptionCheckpointHandler(None, Checkpoint(), tmp_path)
    with pytest.raises(RuntimeError, match=r"outside strategy\.run"):
        ringlet.MirroredStrategy(1).run(handler.run, args=(bool,))


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ({"ps": ["a:1"], "worker": ["b:1"]}, NotImplementedError, "ParameterServerStrategy"),
        ({"worker": ["a:1", "b:1"]}, FailedPreconditionError, "2 workers.*create the MultiWorkerMirroredStrategy"),
    ],
)
def test_a_cluster_without_its_strategy_is_refused(tmp_path, spec, error, words):
    spec = ringlet.train.ClusterSpec(spec)
    resolver = ringlet.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=0)
    with pytest.raises(error, match=words):
        PreemptionCheckpointHandler(resolver, Checkpoint(), tmp_path)


def test_the_hosts_of_a_tpu_slice_are_no_workers(tmp_path):
    resolver = ringlet.cluster_resolver.TPUClusterResolver("v2-32")
    assert len(resolver.cluster_spec().as_dict()["worker"]) > 1
    assert PreemptionCheckpointHandler(resolver, Checkpoint(), tmp_path).run(lambda: 5) == 5


# --- several workers --------------------------------------------------------------------------------------------------

TRAIN = """
import os, signal
from ringlet.experimental import PreemptionCheckpointHandler
from ringlet.train import Checkpoint
with strategy.scope():
    total = ringlet.Variable(0.0)
rows = strategy.distribute_dataset(ringlet.data.Dataset.range(800).shuffle(800, seed=5).repeat().batch(8).prefetch(2))
checkpoint = Checkpoint(total=total, data=iter(rows))
handler = PreemptionCheckpointHandler(strategy.cluster_resolver, checkpoint, folder)

def step(batch):
    return total.assign(total + replica().all_reduce("SUM", np.sum(batch, dtype=float) / (1 + total.numpy())))

def train(victims=(), at=-1, signals=1):
    for number in range(handler.total_run_calls, 30):
        if me in victims and number == at:
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGTERM)
        handler.run(strategy.run, step, args=(next(checkpoint.data),))
    return [float(total), handler.total_run_calls]
"""


@pytest.mark.parametrize(("victims", "at", "signals"), [([0], 7, 1), ([1], 0, 2), ([0, 1], 20, 1)])
def test_a_signal_to_one_worker_saves_the_same_step_on_all(workers, tmp_path, victims, at, signals):
    program = (
        TRAIN
        + """
undisturbed = train()
handler = checkpoint = None
"""
        + TRAIN.replace("folder)", "folder + '/own')")
        + """
try:
    train(victims, at, signals)
except SystemExit as end:
    stopped = [end.code, handler.total_run_calls, sorted(os.listdir(folder + '/own'))]
"""
        + TRAIN.replace("folder)", "folder + '/own')")
        + "answer = [stopped, undisturbed == train()]"
    )
    answers = workers.run(program, folder=str(tmp_path), victims=victims, at=at, signals=signals)
    assert answers == [[[42, at + 1, ["checkpoint", "ckpt-1.safetensors"]], True]] * 2


def test_a_full_disk_of_the_chief_is_an_error_of_all_workers(workers, tmp_path):
    program = (
        TRAIN
        + """
def fail(*arguments):
    raise OSError(28, "full")
import ringlet.train.saving as saving
kept, saving.write_file = saving.write_file, fail
try:
    train([1], 3)
finally:
    saving.write_file = kept
"""
    )
    for answer in workers.run(program, folder=str(tmp_path)):
        assert isinstance(answer, Failure)
        assert answer.kind == "OSError"
        assert "No space left on device" in answer
        assert "saving failed" in answer
