"""A manager keeps the newest checkpoints of a folder, and finds the last good one."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from ringlet import MirroredStrategy, Variable
from ringlet.errors import CheckpointCorruptError
from ringlet.train import Checkpoint, CheckpointManager, CheckpointOptions, checkpoint_manager, latest_checkpoint


@pytest.fixture
def checkpoint():
    return Checkpoint(v=Variable(0.0))


@pytest.fixture
def clock(monkeypatch):
    """The time that managers see, which the test sets."""
    now = [1_000_000.0]
    monkeypatch.setattr(checkpoint_manager, "_now", lambda: now[0])
    return now


def files(folder):
    return sorted(name for name in os.listdir(folder) if name != "checkpoint")


def names(paths):
    return [os.path.basename(path) for path in paths]


def damage(path):
    with open(path + ".safetensors", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))


def test_only_the_newest_are_kept(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, max_to_keep=3)
    assert (m.latest_checkpoint, m.checkpoints, m.directory) == (None, [], str(tmp_path))
    assert (m.checkpoint, m.checkpoint_interval) == (checkpoint, None)
    saved = [m.save() for _ in range(5)]
    assert saved == [str(tmp_path / f"ckpt-{i}") for i in range(1, 6)]
    assert (m.latest_checkpoint, m.checkpoints) == (saved[-1], saved[2:])
    assert files(tmp_path) == [f"ckpt-{i}.safetensors" for i in (3, 4, 5)]
    assert latest_checkpoint(tmp_path) == saved[-1]


def test_the_old_ones_go_only_once_the_new_one_is_there(checkpoint, tmp_path, monkeypatch):
    m = CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    m.save()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(
        OSError, match=r"No space left on device: .*ckpt-2\.safetensors was not written.*bytes are free"
    ):
        m.save()
    monkeypatch.undo()
    assert files(tmp_path) == ["ckpt-1.safetensors"]
    assert (m.latest_checkpoint, m.checkpoints) == (str(tmp_path / "ckpt-1"), [str(tmp_path / "ckpt-1")])
    assert names([m.save()]) == ["ckpt-3"]
    assert files(tmp_path) == ["ckpt-3.safetensors"]


@pytest.mark.parametrize("max_to_keep", [0, -1])
def test_a_number_that_is_not_positive_is_refused(checkpoint, tmp_path, max_to_keep):
    with pytest.raises(ValueError, match=f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}"):
        CheckpointManager(checkpoint, tmp_path, max_to_keep)


def test_none_keeps_all(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, None)
    for _ in range(4):
        m.save()
    assert len(files(tmp_path)) == len(m.checkpoints) == 4


def test_a_later_manager_goes_on(checkpoint, tmp_path):
    first = CheckpointManager(checkpoint, tmp_path, 3)
    for _ in range(4):
        first.save()
    second = CheckpointManager(checkpoint, tmp_path, 2)
    assert names(second.checkpoints) == ["ckpt-2", "ckpt-3", "ckpt-4"]
    assert names([second.latest_checkpoint]) == ["ckpt-4"]
    second.save()
    assert names(second.checkpoints) == ["ckpt-4", "ckpt-5"]
    assert files(tmp_path) == ["ckpt-4.safetensors", "ckpt-5.safetensors"]


def test_a_number_may_be_given_and_the_counter_counts_all_the_same(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 3)
    m.save()
    assert names([m.save(checkpoint_number=77), m.save(checkpoint_number=Variable(78)), m.save(77), m.save(-5)]) == [
        "ckpt-77", "ckpt-78", "ckpt-77", "ckpt--5",
    ]  # fmt: skip
    assert int(checkpoint.save_counter) == 5
    assert names(m.checkpoints) == ["ckpt-78", "ckpt-77", "ckpt--5"]
    for number in ("x", 1.5):
        with pytest.raises(TypeError, match="checkpoint_number must be an integer"):
            m.save(checkpoint_number=number)


def test_an_interval_of_steps(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        CheckpointManager(checkpoint, tmp_path, None, checkpoint_interval=3)
    step = Variable(0)
    m = CheckpointManager(checkpoint, tmp_path, None, step_counter=step, checkpoint_interval=3)
    saved = []
    for _ in range(8):
        saved.append(m.save() is not None)
        step.assign_add(1)
    assert saved == [True, False, False, True, False, False, True, False]
    assert m.save(check_interval=False) is not None
    assert m.save(check_interval=False) is None, "one was saved at this step"
    assert m.checkpoint_interval == 3
    m.restore_or_initialize()
    assert m.save(check_interval=False) is None
    later = CheckpointManager(
        checkpoint, tmp_path, None, step_counter=step, checkpoint_interval=3, last_checkpoint_step=7
    )
    assert later.save() is None


def test_one_is_kept_for_good_every_so_many_hours(checkpoint, tmp_path, clock):
    m = CheckpointManager(checkpoint, tmp_path, 1, keep_checkpoint_every_n_hours=2)
    for hours in (0, 1, 2, 3, 4, 5):
        clock[0] = 1_000_000.0 + hours * 3600
        m.save()
    kept = files(tmp_path)
    assert kept == ["ckpt-3.safetensors", "ckpt-5.safetensors", "ckpt-6.safetensors"]
    assert names(m.checkpoints) == ["ckpt-6"]
    later = CheckpointManager(checkpoint, tmp_path, 1)
    clock[0] += 10
    later.save()
    assert files(tmp_path) == ["ckpt-3.safetensors", "ckpt-5.safetensors", "ckpt-7.safetensors"]


def test_a_clock_that_goes_back_does_not_remove_the_newest(checkpoint, tmp_path, clock):
    m = CheckpointManager(checkpoint, tmp_path, 2)
    for _ in range(4):
        clock[0] -= 3600
        path = m.save()
        assert os.path.exists(path + ".safetensors")
        assert latest_checkpoint(tmp_path) == path
    assert len(files(tmp_path)) == 2
    again = CheckpointManager(checkpoint, tmp_path, 2)
    assert again.latest_checkpoint == path


def test_the_newest_one_is_restored(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 2)
    for value in (1.0, 2.0, 3.0):
        checkpoint.v.assign(value)
        m.save()
    checkpoint.v.assign(9.0)
    assert m.restore_or_initialize() == m.latest_checkpoint
    assert (float(checkpoint.v), int(checkpoint.save_counter)) == (3.0, 3)


def test_without_a_checkpoint_the_function_is_called_that_initializes(checkpoint, tmp_path):
    called = []
    m = CheckpointManager(checkpoint, tmp_path, 2, init_fn=lambda: called.append(1))
    assert m.restore_or_initialize() is None
    assert called == [1]
    m.save()
    m.restore_or_initialize()
    assert called == [1]


def test_if_the_newest_is_damaged_the_last_good_one_is_restored_with_a_warning(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 3)
    for value in (1.0, 2.0, 3.0):
        checkpoint.v.assign(value)
        m.save()
    damage(m.checkpoints[2])
    damage(m.checkpoints[1])
    again = CheckpointManager(checkpoint, tmp_path, 3)
    with pytest.warns(
        RuntimeWarning, match=r"ckpt-3.* is damaged at byte .*ckpt-1\. Restoring .*ckpt-1 instead"
    ) as found:
        assert names([again.restore_or_initialize()]) == ["ckpt-1"]
    assert found[0].filename == __file__
    assert (float(checkpoint.v), names([again.latest_checkpoint])) == (1.0, ["ckpt-1"])
    checkpoint.v.assign(5.0)
    assert names([again.save()]) == ["ckpt-2"], "goes on where the good one was, over the damaged ones"
    again.restore_or_initialize()
    assert float(checkpoint.v) == 5.0


def test_if_all_are_damaged_that_is_an_error(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 3)
    m.save(), m.save()
    for path in m.checkpoints:
        damage(path)
    with pytest.raises(CheckpointCorruptError, match="holds no intact checkpoint"):
        m.restore_or_initialize()


@pytest.mark.parametrize("content", [None, b"", b"garbage {{", b'model_checkpoint_path: "ckpt-1"\n'])
def test_without_its_state_file_a_manager_looks_at_the_files(checkpoint, tmp_path, content, caplog):
    m = CheckpointManager(checkpoint, tmp_path, 4)
    for _ in range(4):
        m.save()
    if content is None:
        (tmp_path / "checkpoint").unlink()
    else:
        (tmp_path / "checkpoint").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        again = CheckpointManager(checkpoint, tmp_path, 2)
    assert (content is None) == (not caplog.records)
    assert names([again.latest_checkpoint]) == ["ckpt-4"]
    assert names(again.checkpoints) == ["ckpt-3", "ckpt-4"]
    again.save()
    assert names(again.checkpoints) == ["ckpt-4", "ckpt-5"]
    # Nothing tells whether the others were to be kept for good.
    assert files(tmp_path) == [f"ckpt-{i}.safetensors" for i in (1, 2, 4, 5)]


def test_what_a_killed_program_left_is_removed(checkpoint, tmp_path):
    left = tmp_path / ".ringlet-0123456789abcdef.saving"
    left.mkdir()
    (left / "file").write_bytes(b"half")
    (tmp_path / ".ringlet-other").mkdir()
    CheckpointManager(checkpoint, tmp_path, 2)
    assert os.listdir(tmp_path) == [".ringlet-other"]


def test_several_managers_in_one_folder_keep_together_what_each_keeps(tmp_path):
    made = [CheckpointManager(Checkpoint(v=Variable(float(i))), tmp_path, 3, checkpoint_name=f"m{i}") for i in range(3)]
    errors = []

    def work(m):
        try:
            for _ in range(8):
                path = m.save()
                m.checkpoint.read(latest_checkpoint(tmp_path))
                assert path
        except FileNotFoundError:
            pass  # another one has removed it meanwhile
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(m,)) for m in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    made[0].save()
    assert len(files(tmp_path)) == 3
    for name in files(tmp_path):
        Checkpoint(v=Variable(0.0)).read(tmp_path / name).assert_existing_objects_matched()


def test_a_name_may_lead_into_a_folder_below(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 1, checkpoint_name="a/b")
    m.save()
    path = m.save()
    assert path == str(tmp_path / "a" / "b-2")
    assert os.listdir(tmp_path / "a") == ["b-2.safetensors"]
    assert latest_checkpoint(tmp_path) == path


def test_only_the_chief_writes_and_all_meet_at_a_barrier(tmp_path):
    barrier, met = threading.Barrier(2), []

    def wait(name):
        met.append(name)
        barrier.wait(30)

    def work(is_chief):
        folder = tmp_path if is_chief else tmp_path / "none"
        options = CheckpointOptions(is_chief=is_chief, barrier=wait)
        CheckpointManager(Checkpoint(v=Variable(1.0)), folder, 2).save(options=options)

    threads = [threading.Thread(target=work, args=(is_chief,)) for is_chief in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert files(tmp_path) == ["ckpt-1.safetensors"]
    assert sorted(met) == [f"checkpoint {tmp_path / 'ckpt-1'}", f"checkpoint {tmp_path / 'none' / 'ckpt-1'}"]


def test_sync_waits_for_nothing(checkpoint, tmp_path):
    assert CheckpointManager(checkpoint, tmp_path, 1).sync() is None


def test_threads_may_save_at_once(checkpoint, tmp_path):
    m, errors, paths = CheckpointManager(checkpoint, tmp_path, 3), [], []

    def work():
        try:
            paths.extend(m.save() for _ in range(10))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(set(paths)) == 40
    assert files(tmp_path) == sorted(os.path.basename(path) + ".safetensors" for path in m.checkpoints)
    assert len(files(tmp_path)) == 3


def test_who_is_not_chief_knows_as_few_checkpoints_as_the_chief(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 2)
    for _ in range(5):
        m.save(options=CheckpointOptions(is_chief=False))
    assert names(m.checkpoints) == ["ckpt-4", "ckpt-5"]


def test_replicas_do_not_save_and_count_nothing(checkpoint, tmp_path):
    m = CheckpointManager(checkpoint, tmp_path, 2)
    with pytest.raises(RuntimeError, match="saved once for all replicas"):
        MirroredStrategy(["CPU:0", "CPU:1"]).run(m.save)
    assert int(checkpoint.save_counter) == 0


def test_what_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"must be a ringlet\.train\.Checkpoint, got \{'v': 1\}"):
        CheckpointManager({"v": 1}, tmp_path, 2)
