"""A status says what found no place."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest

from ringlet import Variable
from ringlet.train import Checkpoint, CheckpointLoadStatus


@pytest.fixture
def path(tmp_path):
    return Checkpoint(a=Variable(1.0), b={"c": Variable(2.0)}).save(tmp_path / "ckpt")


def test_a_restore_in_which_everything_matches_passes_every_check(path):
    status = Checkpoint(a=Variable(0.0), b={"c": Variable(0.0)}).restore(path)
    for check in ("assert_consumed", "assert_existing_objects_matched", "assert_nontrivial_match", "expect_partial"):
        assert getattr(status, check)() is status
    assert isinstance(status, CheckpointLoadStatus)


def test_what_only_the_program_has_fails_both_stricter_checks(path):
    status = Checkpoint(a=Variable(0.0), x=Variable(0.0), y=3).restore(path).expect_partial()
    for check in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=r"Found 2 Python objects that were not bound.*: x, y\."):
            check()
    status.assert_nontrivial_match()


def test_what_only_the_file_has_fails_the_strictest_check(path):
    status = Checkpoint(a=Variable(0.0)).restore(path).expect_partial()
    with pytest.raises(AssertionError, match="Unresolved object in checkpoint: b/c"):
        status.assert_consumed()
    status.assert_existing_objects_matched()


def test_nothing_that_matches_fails_every_check(path):
    status = Checkpoint(other=3).read(path).expect_partial()
    with pytest.raises(AssertionError, match="Nothing except the root object matched"):
        status.assert_nontrivial_match()


def test_restoring_from_none_does_nothing_and_fails_every_check():
    checkpoint = Checkpoint(a=3)
    status = checkpoint.restore(None)
    for check in (status.assert_consumed, status.assert_existing_objects_matched, status.assert_nontrivial_match):
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            check()
    assert status.expect_partial() is status
    assert checkpoint.a == 3


def test_what_was_not_restored_is_logged_when_the_status_goes(path, caplog):
    with caplog.at_level(logging.WARNING):
        Checkpoint(a=Variable(0.0)).restore(path).expect_partial()
        gc.collect()
        assert caplog.records == []
        checkpoint = Checkpoint(a=Variable(0.0))
        checkpoint.restore(path)
        del checkpoint
        gc.collect()
    (record,) = caplog.records
    assert "were not restored, because the program has no objects with these names: b/c" in record.getMessage()


def test_long_lists_are_cut(tmp_path):
    path = Checkpoint(a={f"v{i:02}": Variable(0.0) for i in range(30)}).write(tmp_path / "it")
    with pytest.raises(AssertionError, match=r"a/v09 and 20 more\."):
        Checkpoint().read(path).expect_partial().assert_consumed()


@pytest.mark.parametrize("restore", [Checkpoint.restore, Checkpoint.read])
def test_operations_of_restoring_have_run_when_the_status_is_there(path, restore):
    variable = Variable(0.0)
    status = restore(Checkpoint(a=variable), path).expect_partial()
    variable.assign(5.0)
    assert (status.run_restore_ops(), status.initialize_or_restore()) == (None, None)
    assert variable.numpy() == 5


def test_restoring_from_none_initializes_and_has_nothing_to_run():
    variable = Variable(2.0)
    status = Checkpoint(a=variable).restore(None)
    assert status.initialize_or_restore() is None
    assert variable.numpy() == 2
    with pytest.raises(AssertionError, match="No checkpoint specified, so nothing can be restored"):
        status.run_restore_ops()


@pytest.mark.parametrize("empty", [{}, [], {"a": {}}, [[]]], ids=repr)
def test_empty_lists_and_dictionaries_are_consumed_on_either_side(tmp_path, empty):
    with_it = Checkpoint(v=1, e=empty).save(tmp_path / "with")
    without = Checkpoint(v=1).save(tmp_path / "without")
    Checkpoint(v=0).restore(with_it).assert_consumed()
    Checkpoint(v=0, e=empty).restore(without).assert_consumed()


def test_a_list_in_itself_is_looked_at_once(path):
    endless = []
    endless.append(endless)
    Checkpoint(e=endless).restore(path).expect_partial().assert_existing_objects_matched()


def test_a_restored_checkpoint_goes_without_the_garbage_collector(tmp_path):
    path = Checkpoint(v=1, w=2).save(tmp_path / "ckpt")
    gc.disable()
    try:
        checkpoint = Checkpoint(v=0)
        gone = weakref.ref(checkpoint)
        checkpoint.restore(path).expect_partial()
        del checkpoint
        assert gone() is None
    finally:
        gc.enable()
