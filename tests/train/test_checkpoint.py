"""Checkpoints save variables from where they lie, and answer as TensorFlow's."""

from __future__ import annotations

import os
import threading
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import ringlet
from ringlet import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.train import Checkpoint, latest_checkpoint
from tests.train.objects import same


def test_variables_of_every_dtype_come_back(tmp_path):
    arrays = [np.array([1, 0], dtype) for dtype in ("?", "i1", "<u8", "<f2", "<c16", "<U3", "S2")]
    arrays += [np.array([1.5, 2], ml_dtypes.bfloat16), np.array([1.5, 2], ml_dtypes.float8_e4m3fn), np.zeros((0, 2))]
    variables = [Variable(array) for array in arrays]
    path = Checkpoint(variables=variables).write(tmp_path / "it")
    others = [Variable(np.zeros_like(array)) for array in arrays]
    Checkpoint(variables=others).read(path).assert_consumed()
    for array, other in zip(arrays, others, strict=True):
        assert same(array, np.asarray(other.numpy()).view(np.ndarray))


def test_a_file_is_one_that_any_program_with_the_library_reads(tmp_path):
    path = Checkpoint(model={"w": Variable(np.float32([1, 2]))}, step=Variable(np.int64(3))).write(tmp_path / "it")
    tensors = safetensors.numpy.load_file(path + ".safetensors")
    assert {name: (array.dtype.str, array.tolist()) for name, array in tensors.items()} == {
        "model/w": ("<f4", [1.0, 2.0]),
        "step": ("<i8", 3),
    }


def test_a_variable_with_two_names_is_written_once_and_restored(tmp_path):
    v = Variable([1.0, 2.0])
    path = Checkpoint(a=v, b={"c": v}).write(tmp_path / "it")
    assert list(safetensors.numpy.load_file(path + ".safetensors")) == ["a"]
    a, b = Variable([0.0, 0.0]), Variable([0.0, 0.0])
    Checkpoint(a=a, b={"c": b}).read(path).assert_consumed()
    assert a.numpy().tolist() == b.numpy().tolist() == [1.0, 2.0]


def test_one_variable_where_two_were_saved_is_refused(tmp_path):
    path = Checkpoint(a=Variable(1.0), b=Variable(2.0)).write(tmp_path / "it")
    v = Variable(0.0)
    with pytest.raises(InvalidArgumentError, match="same variable as a, but different values"):
        Checkpoint(a=v, b=v).read(path)
    assert float(v) == 0.0


def test_values_that_were_read_before_a_restore_do_not_change(tmp_path):
    v = Variable([1.0, 2.0])
    checkpoint = Checkpoint(v=v)
    path = checkpoint.save(tmp_path / "ckpt")
    v.assign([5.0, 5.0])
    before = v.read_value()
    checkpoint.restore(path)
    assert (before.tolist(), v.numpy().tolist()) == ([5.0, 5.0], [1.0, 2.0])
    assert not before.flags.writeable


def test_a_variable_whose_shape_may_change_takes_the_saved_shape(tmp_path):
    v = Variable([1.0, 2.0, 3.0], shape=(None,))
    path = Checkpoint(v=v).write(tmp_path / "it")
    v.assign([0.0])
    Checkpoint(v=v).read(path)
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(
        InvalidArgumentError, match=r"shape \(3,\) when attempting to restore variable with shape \(2,\)"
    ):
        Checkpoint(v=Variable([0.0, 0.0])).read(path)


def test_each_variable_is_whole_and_all_are_of_one_moment_while_another_thread_assigns(tmp_path):
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        variables = [Variable(np.zeros(20_000)) for _ in range(3)]
    stop = threading.Event()

    def assign():
        number = 0.0
        while not stop.is_set():
            number += 1
            for v in variables:
                v.assign(np.full(20_000, number))

    writer = threading.Thread(target=assign)
    writer.start()
    try:
        for _ in range(10):
            path = Checkpoint(v=variables).write(tmp_path / "it")
            arrays = list(safetensors.numpy.load_file(path + ".safetensors").values())
            firsts = [set(array.tolist()) for array in arrays]
            assert [len(first) for first in firsts] == [1, 1, 1]
            numbers = [first.pop() for first in firsts]
            assert numbers[0] >= numbers[1] >= numbers[2] >= numbers[0] - 1
    finally:
        stop.set()
        writer.join(30)


def test_an_array_that_is_written_to_while_it_is_saved_is_noticed(tmp_path, monkeypatch):
    array = np.zeros(10)
    serialize = safetensors.serialize_file

    def serialize_and_write(*args, **kwargs):
        serialize(*args, **kwargs)
        array[3] = 1.0

    monkeypatch.setattr(safetensors, "serialize_file", serialize_and_write)
    with pytest.raises(RuntimeError, match="'array' was modified while it was being saved"):
        Checkpoint(array=array).save(tmp_path / "ckpt")
    assert os.listdir(tmp_path) == []


def test_saving_needs_no_copy_of_variables(tmp_path):
    v = Variable(np.ones(1 << 20))
    tracemalloc.start()
    Checkpoint(v=v).write(tmp_path / "it")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 << 20, "a quarter of the variable's 8 MiB"


# --- as TensorFlow has it ---------------------------------------------------------------------------------------------


def test_save_numbers_the_files_and_counts(tmp_path):
    checkpoint = Checkpoint(v=Variable(1.0))
    assert checkpoint.save(tmp_path / "ck") == str(tmp_path / "ck-1")
    assert checkpoint.save(str(tmp_path / "ck")) == str(tmp_path / "ck-2")
    assert (int(checkpoint.save_counter), checkpoint.save_counter.dtype) == (2, np.int64)
    assert latest_checkpoint(tmp_path) == Checkpoint.latest(tmp_path) == str(tmp_path / "ck-2")
    checkpoint.restore(tmp_path / "ck-1")
    assert int(checkpoint.save_counter) == 1


def test_write_numbers_nothing_and_is_read_by_read(tmp_path):
    checkpoint = Checkpoint(v=Variable(1.0))
    assert checkpoint.write(tmp_path / "plain") == str(tmp_path / "plain")
    assert latest_checkpoint(tmp_path) is not None, "found by looking: there is no state file"
    assert sorted(os.listdir(tmp_path)) == ["plain.safetensors"]
    Checkpoint(v=Variable(0.0)).read(tmp_path / "plain").assert_consumed()
    with pytest.raises(AssertionError, match=r"Found 1 Python objects that were not bound.*save_counter"):
        Checkpoint(v=Variable(0.0)).restore(tmp_path / "plain").assert_consumed()
    with pytest.raises(AssertionError, match="Unresolved object in checkpoint: save_counter"):
        Checkpoint(v=Variable(0.0)).read(checkpoint.save(tmp_path / "ck")).expect_partial().assert_consumed()


def test_attributes_may_be_set_and_removed_later(tmp_path):
    checkpoint = Checkpoint()
    checkpoint.late = Variable(1.0)
    checkpoint.other = 3
    del checkpoint.other
    assert not hasattr(checkpoint, "other")
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        del checkpoint.other
    path = checkpoint.save(tmp_path / "ckpt")
    assert set(safetensors.numpy.load_file(path + ".safetensors")) == {"late", "save_counter"}
    assert "late" in dir(checkpoint)
    assert repr(Checkpoint(a=1)) == "Checkpoint(a=1)"


def test_what_is_set_after_a_restore_is_restored_then(tmp_path):
    path = Checkpoint(v=Variable(1.0), w=[1, 2], inner=Checkpoint(x=Variable(3.0))).save(tmp_path / "ckpt")
    later = Checkpoint(inner=Checkpoint())
    status = later.restore(path)
    with pytest.raises(AssertionError, match="Unresolved object in checkpoint: inner/x, v, w"):
        status.assert_consumed()
    later.v = Variable(0.0)
    later.w = []
    later.inner.x = Variable(0.0)
    assert (float(later.v), later.w, float(later.inner.x)) == (1.0, [1, 2], 3.0)
    status.assert_consumed()
    later.v = Variable(7.0)
    assert float(later.v) == 7.0, "only the first one is restored"


def test_what_an_older_restore_has_left_is_restored_when_it_is_set(tmp_path):
    older = Checkpoint(v=Variable(1.0), w=Variable(2.0)).write(tmp_path / "older")
    newer = Checkpoint(v=Variable(3.0)).write(tmp_path / "newer")
    checkpoint = Checkpoint(v=Variable(0.0))
    checkpoint.read(older).expect_partial()
    checkpoint.read(newer)
    checkpoint.w = Variable(0.0)
    assert (float(checkpoint.v), float(checkpoint.w)) == (3.0, 2.0)


def test_what_is_set_later_is_restored_from_another_folder_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Checkpoint(v=Variable(1.0)).write("it")
    checkpoint = Checkpoint()
    checkpoint.read(path)
    monkeypatch.chdir("/")
    checkpoint.v = Variable(0.0)
    assert float(checkpoint.v) == 1.0


def test_a_checkpoint_that_has_itself_is_shown_and_refused(tmp_path):
    path = Checkpoint(v=Variable(1.0)).write(tmp_path / "it")
    checkpoint = Checkpoint(v=Variable(0.0))
    checkpoint.me = checkpoint
    assert repr(checkpoint).endswith("me=...)")
    for use in (checkpoint.write, checkpoint.read):
        with pytest.raises(ValueError, match=r"me/me/me/\.\.\. is nested more than 100 levels deep"):
            use(path)


def test_one_without_attributes_says_so():
    with pytest.raises(AttributeError, match="has no attribute 'x'; it has: nothing yet"):
        _ = Checkpoint().x


def test_a_name_of_the_checkpoint_itself_is_refused():
    for name in ("save", "restore", "save_counter", "_objects"):
        with pytest.raises(ValueError, match=f"'{name}' is an attribute of every Checkpoint"):
            Checkpoint(**{name: 3})


def test_root_brings_its_own_names(tmp_path):
    v = Variable(1.0)
    path = Checkpoint(Checkpoint(v=v), w=2).save(tmp_path / "ckpt")
    flat = Checkpoint(v=Variable(0.0), w=0)
    flat.restore(path).assert_consumed()
    assert (float(flat.v), flat.w) == (1.0, 2)
    root = {"v": Variable(0.0), "w": 0}
    Checkpoint(root).restore(path).assert_consumed()
    assert (float(root["v"]), root["w"]) == (1.0, 2)
    with pytest.raises(ValueError, match=r"keyword argument v if root\.v already exists"):
        Checkpoint(Checkpoint(v=v), v=Variable(2.0))


def test_replicas_do_not_save_each_for_itself(tmp_path):
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    checkpoint = Checkpoint(v=Variable(1.0))
    with pytest.raises(RuntimeError, match="saved once for all replicas"):
        strategy.run(lambda: checkpoint.save(tmp_path / "ckpt"))
    with strategy.scope():
        path = checkpoint.save(tmp_path / "ckpt")
        checkpoint.restore(path)


def test_folders_are_made_and_names_may_hold_anything(tmp_path):
    name = "a b.\u20ac" + "x" * 200
    path = Checkpoint(**{"w/\u00e9.\n": Variable(1.0), "n" * 5000: 2}).save(tmp_path / "new" / "er" / name)
    restored = Checkpoint(**{"w/\u00e9.\n": Variable(0.0), "n" * 5000: 0})
    restored.restore(path).assert_consumed()
    assert float(getattr(restored, "w/\u00e9.\n")) == 1.0
    with pytest.raises(OSError, match="File name too long"):
        Checkpoint(a=1).save(tmp_path / ("x" * 300))


def test_a_folder_reached_by_a_link_and_a_name_that_is_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = Checkpoint(a=1).write(tmp_path / "link" / "it")
    assert (tmp_path / "real" / "it.safetensors").exists()
    other = tmp_path / "other.safetensors"
    other.write_text("somebody else's")
    (tmp_path / "named.safetensors").symlink_to(other)
    Checkpoint(a=2).write(tmp_path / "named")
    assert other.read_text() == "somebody else's", "the link was replaced, not what it leads to"
    restored = Checkpoint(a=0)
    restored.read(path)
    assert restored.a == 1


def test_a_path_may_be_relative_and_have_the_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint(a=1)
    assert checkpoint.save("ckpt") == "ckpt-1"
    assert latest_checkpoint(".") == os.path.join(".", "ckpt-1")
    checkpoint.a = 0
    checkpoint.restore("ckpt-1.safetensors")
    assert checkpoint.a == 1


def test_files_have_the_permissions_that_files_of_the_process_have(tmp_path):
    (tmp_path / "like").touch()
    path = Checkpoint(a=1).save(tmp_path / "ckpt")
    modes = {os.stat(file).st_mode for file in (tmp_path / "like", path + ".safetensors", tmp_path / "checkpoint")}
    assert len(modes) == 1


def test_a_file_in_a_read_only_folder_is_refused_by_name(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", refuse)  # root may write everywhere
    with pytest.raises(PermissionError, match=r"ckpt-1\.safetensors was not written.*unchanged"):
        Checkpoint(a=1).save(tmp_path / "ckpt")


@pytest.mark.parametrize("make", [np.str_, np.bytes_, np.array, lambda text: np.array(text.encode(), object)])
def test_a_path_may_be_a_numpy_string(tmp_path, make):
    text = str(tmp_path / "ckpt")
    path = make(text.encode() if make is np.bytes_ else text)
    assert Checkpoint(step=3).write(path) == text
    Checkpoint(step=0).read(path).assert_consumed()


def test_sync_has_nothing_to_wait_for():
    assert Checkpoint(step=3).sync() is None
