"""Datasets of tensors of PyTorch and arrays of JAX give elements of their kind, cut over replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.data import Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError
from tests.frameworks.libraries import library
from tests.frameworks.test_strategies import MAKERS, assert_like, local
from tests.strategy.replicas import mirrored

torch = library("torch")
jnp = library("jax.numpy")


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


ROWS = np.arange(12).reshape(6, 2)


def test_slices_are_of_the_kind_of_the_array(make):
    dataset = Dataset.from_tensor_slices({"x": make(ROWS), "y": make(ROWS[:, 0]), "n": np.arange(6)})
    assert dataset.element_spec["x"] == TensorSpec((2,), make([0]).dtype if make is MAKERS["jax"] else "bfloat16")
    element = list(dataset)[2]
    assert_like(element["x"], make, [4, 5])
    assert_like(element["y"], make, 4)
    assert element["n"] == 2


def test_batches_are_of_the_kind_of_the_array(make):
    (batch, rest) = Dataset.from_tensor_slices(make(ROWS)).batch(4)
    assert_like(batch, make, ROWS[:4])
    assert_like(rest, make, ROWS[4:])


def test_batches_of_shuffled_rows_are_gathered_once(make):
    dataset = Dataset.from_tensor_slices((make(ROWS), np.arange(6))).shuffle(6, seed=1).batch(4)
    for rows, numbers in dataset:
        assert_like(rows, make, ROWS[numbers])


def test_batches_in_order_are_views_of_tensors():
    x = torch.arange(12.0).reshape(6, 2)
    batches = list(Dataset.from_tensor_slices(x).batch(4))
    assert [batch.data_ptr() - x.data_ptr() for batch in batches] == [0, 4 * 2 * 4]


def test_functions_get_and_give_them(make):
    dataset = Dataset.from_tensor_slices(make(ROWS)).map(lambda x: (x + x, x.shape[0]))
    assert dataset.element_spec[0].shape == (2,)
    (doubled, _), *_ = dataset
    assert_like(doubled, make, [0, 2])
    ((batch, counts),) = dataset.batch(6)
    assert_like(batch, make, 2 * ROWS)
    assert counts.tolist() == [2] * 6


def test_elements_of_different_libraries_are_not_stacked():
    dataset = Dataset.from_tensor_slices(np.arange(2.0)).map(lambda x: torch.tensor(x) if x else x).batch(2)
    with pytest.raises(InvalidArgumentError, match=r"element 0 has a numpy.*element 1 has a torch\.Tensor"):
        list(dataset)


@pytest.mark.parametrize("source", ["slices", "iterable"])
def test_global_batches_are_cut_for_the_replicas(make, source):
    strategy = mirrored()
    if source == "slices":
        dataset: Any = Dataset.from_tensor_slices(make(ROWS)).batch(4).prefetch(1)
    else:
        dataset = [make(ROWS[:4]), make(ROWS[4:])]
    parts = [local(part, strategy) for part in strategy.experimental_distribute_dataset(dataset)]
    for (first, second), rows in zip(parts, (ROWS[:4], ROWS[4:]), strict=True):
        half = len(rows) // 2
        assert_like(first, make, rows[:half])
        assert_like(second, make, rows[half:])


def test_a_tensor_without_rows_to_cut_is_refused():
    with pytest.raises(InvalidArgumentError, match="slices arrays along their first dimension"):
        Dataset.from_tensor_slices(torch.tensor(5.0))


def test_a_tensor_that_needs_gradients_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"\.detach\(\)"):
        Dataset.from_tensor_slices(torch.ones(2, requires_grad=True))


def test_batches_of_a_data_loader_are_cut_as_tensors():
    strategy = mirrored()
    x = torch.arange(12.0).reshape(6, 2)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, 0]), batch_size=4)
    step = next(iter(strategy.experimental_distribute_dataset(loader)))
    (first, second), (labels, _) = (local(part, strategy) for part in step)
    assert (first.tolist(), second.tolist()) == ([[0, 1], [2, 3]], [[4, 5], [6, 7]])
    assert (type(labels), labels.tolist()) == (torch.Tensor, [0, 2])


def rows_of(make: Any) -> Any:
    return Dataset.from_tensor_slices(make(ROWS))


def pairs_of_windows(make: Any) -> Any:
    return rows_of(make).window(2).flat_map(lambda window: window.batch(2))


def pairs_of_mapped_windows(make: Any) -> Any:
    return rows_of(make).map(lambda x: x + 0).window(2).flat_map(lambda window: window.batch(2))


KEEPERS: dict[str, tuple[Any, Any]] = {
    # what is done, and the first element of what comes out
    "from_tensors": (lambda make: Dataset.from_tensors(make(ROWS)), ROWS),
    "interleave": (lambda make: rows_of(make).interleave(Dataset.from_tensors, cycle_length=2), ROWS[0]),
    "padded_batch": (lambda make: rows_of(make).padded_batch(2, [3]), [[0, 1, 0], [2, 3, 0]]),
    "unbatch": (lambda make: rows_of(make).batch(4).unbatch(), ROWS[0]),
    "window": (pairs_of_windows, ROWS[:2]),
    "window of mapped": (pairs_of_mapped_windows, ROWS[:2]),
    "concatenate": (lambda make: rows_of(make).concatenate(rows_of(make)).skip(3).batch(4), ROWS[[3, 4, 5, 0]]),
    "filter": (lambda make: rows_of(make).filter(lambda x: x[0] > 3), ROWS[2]),
    "take_while": (lambda make: rows_of(make).take_while(lambda x: x[0] < 1), ROWS[0]),
    "cache": (lambda make: rows_of(make).map(lambda x: x + 0).cache(), ROWS[0]),
    "zip": (lambda make: Dataset.zip(rows_of(make), rows_of(make)).map(lambda x, y: x + y), 2 * ROWS[0]),
}


@pytest.mark.parametrize("operation", KEEPERS)
def test_an_operation_keeps_the_kind(make, operation):
    apply, expected = KEEPERS[operation]
    assert_like(next(iter(apply(make))), make, np.asarray(expected).tolist())


def test_shuffled_rows_of_two_datasets_are_joined_in_their_kind(make):
    both = rows_of(make).concatenate(rows_of(make).map(lambda x: x)).cache()
    tables = rows_of(make).concatenate(rows_of(make)).shuffle(12, seed=1).batch(12)
    assert len(list(both)) == 12
    (batch,) = tables
    assert type(batch) is type(make(0))
    assert sorted(batch[:, 0].tolist()) == sorted([*ROWS[:, 0].tolist()] * 2)


def test_datasets_of_different_libraries_have_no_batch_in_common():
    dataset = Dataset.from_tensor_slices(torch.ones(3)).concatenate(Dataset.from_tensor_slices(np.ones(3, "f4")))
    with pytest.raises(InvalidArgumentError, match=r"a torch\.Tensor, .* a numpy\.ndarray"):
        list(dataset.batch(4))


def test_a_generator_s_tensors_are_converted_to_the_signature_s_dtype_in_their_kind(make):
    dataset = Dataset.from_generator(lambda: iter(make(ROWS)), output_signature=TensorSpec((2,), np.float32))
    element = next(iter(dataset))
    assert type(element) is type(make(0))
    assert (str(element.dtype).rpartition(".")[2], element.tolist()) == ("float32", [0, 1])


def test_a_function_behind_a_batch_is_tried_on_an_example_of_the_kind():
    x = torch.arange(6.0)
    dataset = Dataset.from_tensor_slices(x).batch(4).map(lambda batch: batch.mul_(2).unsqueeze(1))
    assert dataset.element_spec == TensorSpec((None, 1), np.float32)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_an_iterator_of_numpy_gives_numpy_s(make):
    dataset = rows_of(make).map(lambda x: (x, 1))
    row, one = dataset.as_numpy_iterator().get_next()
    assert (type(row), row.dtype.name, row.tolist(), one) == (np.ndarray, "bfloat16", [0, 1], 1)


def test_whole_numbers_are_told_apart(make):
    numbers = torch.tensor([3, 1, 3]) if make is MAKERS["torch"] else jnp.array([3, 1, 3])
    assert [int(number) for number in Dataset.from_tensor_slices(numbers).unique()] == [3, 1]


def test_asking_for_the_spec_of_a_function_that_writes_to_its_rows_leaves_them_alone():
    x = torch.arange(6.0).reshape(3, 2)
    assert Dataset.from_tensor_slices(x).map(lambda row: row.add_(1)).element_spec == TensorSpec((2,), np.float32)
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]
