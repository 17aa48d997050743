"""A restore changes everything, or nothing and says why."""

from __future__ import annotations

import os

import numpy as np
import pytest

import ringlet
from ringlet import Variable
from ringlet.errors import CheckpointCorruptError, InvalidArgumentError, NotFoundError
from ringlet.train import Checkpoint
from tests.train.objects import Counter, Model


def test_objects_with_get_state_or_state_dict_are_restored(tmp_path):
    path = Checkpoint(counter=Counter(3), model=Model(2.0)).save(tmp_path / "ckpt")
    counter, model = Counter(), Model(0.0)
    weights = model.weights
    Checkpoint(counter=counter, model=model).restore(path).assert_consumed()
    assert (counter.count, weights.tolist()) == (3, [2.0, 2.0, 2.0])


def test_an_iterator_of_a_dataset_goes_on_where_it_was(tmp_path):
    def iterator():
        return iter(ringlet.data.Dataset.range(20).shuffle(7, seed=3).batch(3))

    first = iterator()
    next(first), next(first)
    path = Checkpoint(iterator=first).save(tmp_path / "ckpt")
    rest = [batch.tolist() for batch in first]
    second = iterator()
    Checkpoint(iterator=second).restore(path).assert_consumed()
    assert [batch.tolist() for batch in second] == rest


def test_an_object_that_refuses_its_state_leaves_everything_as_it_was(tmp_path):
    class Refusing(Counter):
        def set_state(self, state):
            super().set_state(state)
            if state["count"] == 3:
                raise RuntimeError("not three")

    path = Checkpoint(a=Counter(5), b=Counter(3), v=Variable(1.0), plain=[1]).save(tmp_path / "ckpt")
    a, b, v, plain = Counter(1), Refusing(2), Variable(0.0), [7]
    with pytest.raises(RuntimeError, match="not three"):
        Checkpoint(a=a, b=b, v=v, plain=plain).restore(path)
    assert (a.count, b.count, float(v), plain) == (1, 2, 0.0, [7])


def test_a_state_dict_with_another_shape_is_refused_before_anything_is_loaded(tmp_path):
    path = Checkpoint(model=Model(2.0)).save(tmp_path / "ckpt")
    other = Model(0.0)
    other.weights = np.zeros(4)
    with pytest.raises(
        InvalidArgumentError, match=r"model/weights: saved with shape \(3,\), but it has shape \(4,\) in the program"
    ):
        Checkpoint(model=other).restore(path)


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_everything_that_does_not_fit_is_named_at_once_and_nothing_is_changed(tmp_path):
    saved = Checkpoint(a=Variable([1.0, 2.0]), b=Variable(1.0), c=Variable(3.0), d=4, e=5)
    path = saved.save(tmp_path / "ckpt")
    a, b, c = Variable([0.0, 0.0, 0.0]), Variable(np.int32(0)), Variable(0.0)
    other = Checkpoint(a=a, b=b, c=c, d=Variable(0), f=Variable(0.0))
    with pytest.raises(InvalidArgumentError) as caught:
        other.restore(path)
    lines = str(caught.value).splitlines()
    expected = [
        "a: Received incompatible tensor with shape (2,)",
        "b: saved as float64, but variable",
        "d: saved as an",
        "f: is not in the file",
        "e: is in the file",
    ]
    for words in expected:
        assert any(line.strip().startswith(words) for line in lines), (words, lines)
    assert (a.numpy().tolist(), int(b), float(c), int(other.d)) == ([0, 0, 0], 0, 0.0, 0)
    assert "save_counter" not in dir(other) or int(other.save_counter) == 0


def test_names_of_one_side_are_an_error_if_that_is_asked_for(tmp_path):
    path = Checkpoint(a=Variable(1.0), b=2).save(tmp_path / "ckpt")
    a = Variable(0.0)
    with pytest.raises(InvalidArgumentError, match=r"(?s)c: is not in the file.*b: is in the file"):
        Checkpoint(a=a, c=3).restore(path, strict=True)
    assert float(a) == 0.0
    Checkpoint(a=a, b=0).restore(path, strict=True)
    assert float(a) == 1.0


def test_a_damaged_tensor_leaves_all_variables_as_they_were(tmp_path):
    checkpoint = Checkpoint(a=Variable(np.zeros(100)), b=Variable(np.ones(100)))
    path = checkpoint.save(tmp_path / "ckpt")
    checkpoint.a.assign(np.full(100, 7.0))
    file = tmp_path / "ckpt-1.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointCorruptError, match=r"'b' there do not match their checksum.*no intact") as caught:
        checkpoint.restore(path)
    assert (caught.value.file, caught.value.offset) == (str(file), len(content) - 800)
    assert set(checkpoint.a.numpy()) == {7.0}


def test_the_error_of_a_damaged_file_names_the_newest_good_one(tmp_path):
    checkpoint = Checkpoint(v=Variable(1.0))
    paths = [checkpoint.save(tmp_path / "ckpt") for _ in range(4)]
    for path in paths[2:]:
        with open(path + ".safetensors", "r+b") as file:
            file.truncate(os.path.getsize(path + ".safetensors") - 3)
    with pytest.raises(
        CheckpointCorruptError, match=r"damaged at byte \d+.*the newest intact checkpoint in its folder is .*ckpt-2"
    ):
        checkpoint.restore(paths[3])


def test_a_file_that_is_not_there_is_named_with_what_to_look_at(tmp_path):
    with pytest.raises(NotFoundError, match=r"(?s)ckpt-9.*double-check that the path is correct.*latest_checkpoint"):
        Checkpoint(step=3).restore(tmp_path / "ckpt-9")
