"""Batches of elements of similar length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError
from tests.data.state_cases import through_a_file

ROWS = [[0], [1, 2, 3, 4], [5, 6, 7], [7, 8, 9, 10, 11], [13, 14, 15, 16, 19, 20], [21, 22]]
SMALL, MIDDLE = [[0, 0], [21, 22]], [[1, 2, 3, 4], [5, 6, 7, 0]]
LARGE = [[7, 8, 9, 10, 11, 0], [13, 14, 15, 16, 19, 20]]


def padded(batch, size):
    return [row + [0] * (size - len(row)) for row in batch]


# boundaries, batch sizes, other arguments: batches of ROWS, as TensorFlow 2.21 gives them
CASES = [
    ([3, 5], [2, 2, 2], {}, [MIDDLE, LARGE, SMALL]),
    ([3, 5], [2, 2, 2], {"drop_remainder": True}, [MIDDLE, LARGE, SMALL]),
    (
        [3, 5],
        [1, 2, 3],
        {"padded_shapes": [8]},
        [padded(batch, 8) for batch in ([[0]], MIDDLE, [[21, 22]], LARGE)],
    ),
    ([5, 3], [2, 2, 2], {}, [[[0, 0, 0, 0], [1, 2, 3, 4]], LARGE, [[5, 6, 7], [21, 22, 0]]]),
    ([], [2], {}, [padded([[0], [1, 2, 3, 4]], 4), padded([[5, 6, 7], ROWS[3]], 5), padded([ROWS[4], [21, 22]], 6)]),
]


@pytest.mark.parametrize(("boundaries", "sizes", "others", "expected"), CASES)
def test_batches_come_as_tensorflow_s(boundaries, sizes, others, expected):
    dataset = Dataset.from_list(ROWS).bucket_by_sequence_length(len, boundaries, sizes, **others)
    assert dataset.cardinality() == UNKNOWN_CARDINALITY
    assert dataset.element_spec.shape[1] == (8 if "padded_shapes" in others else None)
    assert [x.tolist() for x in dataset] == expected


def test_padding_values_fill_the_rest():
    dataset = Dataset.from_list(ROWS).bucket_by_sequence_length(len, [3, 5], [2, 2, 2], padding_values=-1)
    assert [x.tolist()[0][-1] for x in dataset] == [4, -1, -1]


def test_sizes_reach_to_the_boundary_of_the_bucket():
    dataset = Dataset.from_list(ROWS).bucket_by_sequence_length(len, [4, 7], [2, 2, 2], pad_to_bucket_boundary=True)
    assert [x.shape for x in dataset] == [(2, 3), (2, 6), (1, 3), (1, 6)]
    assert dataset.element_spec == TensorSpec([None, None], np.int64)


class Labelled(NamedTuple):
    row: object
    label: object


@pytest.mark.parametrize("shapes", [None, Labelled([None], [])])
def test_named_tuples_reach_to_the_boundary_too(shapes):
    rows = Dataset.from_list([Labelled(row, len(row)) for row in ROWS])
    dataset = rows.bucket_by_sequence_length(
        lambda element: len(element.row), [4, 7], [2, 2, 2], padded_shapes=shapes, pad_to_bucket_boundary=True
    )
    assert [(x.row.shape, x.label.shape) for x in dataset] == [
        ((2, 3), (2,)),
        ((2, 6), (2,)),
        ((1, 3), (1,)),
        ((1, 6), (1,)),
    ]


def test_sizes_of_an_unknown_number_of_dimensions_cannot_reach_to_the_boundary():
    rows = Dataset.from_generator(lambda: iter(ROWS), output_signature=TensorSpec(None, np.int64))
    dataset = rows.bucket_by_sequence_length(len, [4, 7], [2, 2, 2], pad_to_bucket_boundary=True)
    with pytest.raises(
        ValueError, match="requires padded_shapes, because the number of dimensions of component 0 is unknown"
    ):
        list(dataset)
    dataset = rows.bucket_by_sequence_length(len, [4, 7], [2, 2, 2], padded_shapes=(-1,), pad_to_bucket_boundary=True)
    assert [x.shape for x in dataset] == [(2, 3), (2, 6), (1, 3), (1, 6)]


def test_elements_beyond_the_last_boundary_are_refused():
    dataset = Dataset.from_list(ROWS).bucket_by_sequence_length(len, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True)
    with pytest.raises(InvalidArgumentError, match="last of bucket_boundaries"):
        list(dataset)


def test_elements_of_one_shape_need_no_padding():
    dataset = Dataset.range(7).bucket_by_sequence_length(lambda x: x, [2, 4], [2, 2, 2], no_padding=True)
    assert [x.tolist() for x in dataset] == [[0, 1], [2, 3], [4, 5], [6]]
    rows = Dataset.from_list(ROWS).bucket_by_sequence_length(len, [3, 5], [2, 2, 2], no_padding=True)
    with pytest.raises(InvalidArgumentError, match="different shapes"):
        list(rows)


def test_components_are_padded_apart():
    pairs = Dataset.from_list([(row, len(row)) for row in ROWS])
    dataset = pairs.bucket_by_sequence_length(lambda row, length: length, [3, 5], [2, 2, 2])
    assert [(x.tolist(), n.tolist()) for x, n in dataset] == [(MIDDLE, [4, 3]), (LARGE, [5, 6]), (SMALL, [1, 2])]


@pytest.mark.parametrize("taken", range(4))
def test_an_iterator_continues_where_its_state_was_taken(taken):
    dataset = Dataset.from_list(ROWS).bucket_by_sequence_length(len, [3, 5], [1, 2, 3])
    iterator, other = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    other.set_state(through_a_file(iterator.get_state()))
    assert [x.tolist() for x in other] == [x.tolist() for x in iterator]


def test_there_is_one_size_more_than_boundaries():
    with pytest.raises(InvalidArgumentError, match="2 batch sizes and 2 boundaries"):
        Dataset.range(3).bucket_by_sequence_length(lambda x: x, [3, 5], [2, 2])


def test_sizes_must_be_positive():
    with pytest.raises(InvalidArgumentError, match="greater than zero"):
        list(Dataset.from_list(ROWS).bucket_by_sequence_length(len, [3, 5], [2, 0, 2]))


def test_tensors_are_put_into_buckets():
    rows = tf.data.experimental.from_list(ROWS)
    dataset = rows.bucket_by_sequence_length(
        lambda row: row.shape[0], bucket_boundaries=[3, 5], bucket_batch_sizes=[2] * 3
    )
    assert dataset.element_spec == TensorSpec([None, None], np.int32)
    assert [x.numpy().tolist() for x in dataset] == [MIDDLE, LARGE, SMALL]
