"""Models, optimizers and arrays of other libraries in checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.errors import InvalidArgumentError
from ringlet.train import Checkpoint
from tests.frameworks.libraries import library

torch = library("torch")
library("safetensors")


def made(seed, width=4):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def train(model, optimizer, steps):
    x = torch.linspace(-1, 1, 24).reshape(8, 3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def test_a_model_and_its_optimizer_go_on_with_the_same_bits(tmp_path):
    model, optimizer = made(0)
    train(model, optimizer, 3)
    path = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    expected = train(model, optimizer, 3)
    other, other_optimizer = made(1)
    weights = other[0].weight
    Checkpoint(model=other, optimizer=other_optimizer).restore(path).assert_consumed()
    assert other[0].weight is weights
    assert train(other, other_optimizer, 3) == expected


def test_a_model_of_another_shape_is_refused_before_anything_is_loaded(tmp_path):
    model, _ = made(0)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    other, _ = made(1, width=5)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(
        InvalidArgumentError, match=r"model/0\.weight: saved with shape \(4, 3\), but it has shape \(5, 3\)"
    ):
        Checkpoint(model=other).restore(path)
    assert all(torch.equal(before[name], tensor) for name, tensor in other.state_dict().items())


def test_a_model_that_refuses_its_state_is_as_it_was(tmp_path):
    model, _ = made(0)
    path = Checkpoint(model=model).save(tmp_path / "ckpt")
    other = torch.nn.Sequential(torch.nn.Linear(3, 4))
    before = other[0].weight.clone()
    with pytest.raises(RuntimeError, match="Unexpected key"):
        Checkpoint(model=other).restore(path)
    assert torch.equal(before, other[0].weight)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "float8_e4m3fn", "complex64"])
def test_tensors_are_tensors_again(tmp_path, dtype):
    tensor = torch.tensor([0.0, 1.0, 2.0]).to(getattr(torch, dtype))
    path = Checkpoint(state={"a": tensor, "b": [tensor[::2]]}).save(tmp_path / "ckpt")
    restored = Checkpoint(state={})
    restored.restore(path).assert_consumed()
    a, b = restored.state["a"], restored.state["b"][0]
    assert (type(a), a.dtype, b.dtype) == (torch.Tensor, tensor.dtype, tensor.dtype)
    assert torch.equal(a.to(torch.complex64), tensor.to(torch.complex64))
    assert torch.equal(b.to(torch.complex64), tensor[::2].to(torch.complex64))
    a[0] = 1
    assert tensor.to(torch.complex64)[0] == 0, "in memory of its own"


def test_arrays_of_jax_are_such_again_where_one_is_there(tmp_path):
    jax = library("jax")
    array = jax.numpy.arange(3.0)
    path = Checkpoint(array=array).save(tmp_path / "ckpt")
    there = Checkpoint(array=jax.numpy.zeros(1))
    there.restore(path).assert_consumed()
    assert isinstance(there.array, jax.Array)
    assert there.array.tolist() == [0.0, 1.0, 2.0]
    nothing = Checkpoint(array=None)
    nothing.restore(path).assert_consumed()
    assert isinstance(nothing.array, np.ndarray)
