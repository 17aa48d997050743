"""One process writes, and the others wait as they were told."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.train import Checkpoint
from ringlet.train.checkpoint_options import CheckpointOptions, wait_for_chief, writes


def test_who_writes_is_told_or_else_the_strategy_tells():
    assert writes(None)
    assert writes(CheckpointOptions(is_chief=True))
    with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        assert writes(CheckpointOptions())
        assert not writes(CheckpointOptions(is_chief=False))


def test_the_barrier_has_the_path_in_its_name_and_may_be_left_out():
    met = []
    wait_for_chief(CheckpointOptions(barrier=met.append), "runs/ckpt-1")
    wait_for_chief(CheckpointOptions(), "runs/ckpt-1")
    wait_for_chief(None, "runs/ckpt-1")
    assert met == ["checkpoint runs/ckpt-1"]


def test_options_have_tensorflows_order_and_ours_by_name_alone():
    options = CheckpointOptions("/job:localhost", False, [], True, True, None)
    assert (options.experimental_io_device, options.experimental_skip_slot_variables) == ("/job:localhost", True)
    assert options.enable_async
    assert options.experimental_enable_async_checkpoint
    with pytest.raises(TypeError):
        CheckpointOptions(None, False, None, False, False, None, True)
    options.enable_async = False
    assert not options.enable_async


def test_options_that_cannot_be_met_are_refused():
    with pytest.raises(AssertionError, match="must take the path, or no argument"):
        CheckpointOptions(experimental_write_callbacks=[lambda path, more: None])
    with pytest.raises(ValueError, match="a checkpoint is one file"):
        CheckpointOptions(experimental_sharding_callback=3)


@pytest.mark.parametrize("is_chief", [None, False])
def test_write_callbacks_are_called_in_order_before_the_file_is_the_newest(tmp_path, is_chief):
    called, state = [], tmp_path / "checkpoint"
    callbacks = [lambda: called.append("first"), lambda path: called.append((path, state.exists()))]
    options = CheckpointOptions(experimental_write_callbacks=callbacks, is_chief=is_chief)
    path = Checkpoint(step=3).save(tmp_path / "ckpt", options)
    assert called == ["first", (path, False)]
    assert len(callbacks) == 2


def test_what_a_write_callback_raises_is_raised_and_the_file_stays(tmp_path):
    def refuse(path):
        raise KeyError(path)

    with pytest.raises(KeyError):
        Checkpoint(step=3).write(tmp_path / "ckpt", CheckpointOptions(experimental_write_callbacks=[refuse]))
    assert (tmp_path / "ckpt.safetensors").exists()


def test_a_file_is_on_the_disk_at_once_although_it_may_be_written_later(tmp_path):
    Checkpoint(step=3).save(tmp_path / "ckpt", CheckpointOptions(enable_async=True))
    assert (tmp_path / "ckpt-1.safetensors").exists()
