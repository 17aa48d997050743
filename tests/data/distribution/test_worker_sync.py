"""Workers of one distributed dataset notice what differs, and never wait for one that ended or failed."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ringlet.data import AutoShardPolicy, Dataset, DistributedDataset, Options
from ringlet.data.distribution.input_placement import Place
from ringlet.data.distribution.worker_sync import Others, kind_of_element
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, WorkerLostError
from ringlet.testing import run_on_ranks
from tests.strategy.workers import Workers


def by_itself(dataset):
    """Have each worker read its own dataset."""
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    return dataset.with_options(options)


class Meeting:
    """What joins workers that are threads."""

    def __init__(self):
        self.lock, self.brought = threading.Lock(), {}

    def exchange(self, member, data):
        with self.lock:
            self.brought[member.rank] = data
        member.barrier("in")
        every = [self.brought[rank] for rank in range(member.num_ranks)]
        member.barrier("out")
        return every


def steps_of(make, *, replicas=1, count=2, most=20, **kwargs):
    """What each worker sees: its steps, and the error that ended them, if one did."""
    meeting = Meeting()

    def read(member):
        distributed = DistributedDataset(
            by_itself(make(member.rank)), replicas, num_workers=count, worker_index=member.rank,
            sum_over_workers=lambda number: int(member.all_reduce(np.array(number))),
            exchange=lambda data: meeting.exchange(member, data), **kwargs,
        )  # fmt: skip
        steps = []
        try:
            for step in distributed:
                steps.append(step)
                if len(steps) == most:
                    break
        except Exception as error:
            return steps, error
        return steps, None

    return run_on_ranks(count, read)


@pytest.mark.parametrize(
    ("element", "kind"),
    [
        (np.zeros((4, 3), np.float32), "float32[*, *]"),
        ((np.int64(3), {"b": np.zeros(2), "a": "text"}), "[0]: int64[], [1]['a']: str, [1]['b']: float64[*]"),
        (np.array(["ab"]), "text[*]"),
    ],
)
def test_a_kind_is_the_structure_with_dtypes_and_numbers_of_dimensions(element, kind):
    assert kind_of_element(element) == kind


def test_sizes_may_differ_from_worker_to_worker():
    answers = steps_of(lambda worker: Dataset.from_tensor_slices(np.zeros((4, 2 + worker))).batch(4))
    assert [(len(steps), error) for steps, error in answers] == [(2, None)] * 2


OTHER_KINDS = [
    (np.arange(4.0), np.arange(4)),
    (np.zeros((4, 2)), np.zeros((4, 2, 1))),
    ((np.zeros(4), np.zeros(4)), np.zeros(4)),
    ({"a": np.zeros(4)}, {"b": np.zeros(4)}),
]


def test_the_order_of_names_does_not_matter():
    one, other = {"a": np.zeros(2), "b": np.ones(2)}, {"b": np.ones(2), "a": np.zeros(2)}
    assert kind_of_element(one) == kind_of_element(other)


@pytest.mark.parametrize("kwargs", [{}, {"uneven": "keep"}], ids=["usual", "keep"])
@pytest.mark.parametrize(("one", "other"), OTHER_KINDS, ids=["dtype", "dimensions", "structure", "names"])
def test_elements_of_another_kind_are_noticed_by_all_at_the_first_step(one, other, kwargs):
    answers = steps_of(lambda worker: Dataset.from_tensor_slices(other if worker else one).batch(2), **kwargs)
    for steps, error in answers:
        assert steps == []
        assert type(error) is CollectiveMismatchError
        assert "worker 0: " in str(error)
        assert "worker 1: " in str(error)


def test_a_worker_without_data_is_of_no_other_kind():
    answers = steps_of(lambda worker: Dataset.range(4 * worker).batch(2))
    assert [(len(steps), error) for steps, error in answers] == [(4, None)] * 2  # rows are counted off for 2 replicas


def test_a_worker_that_runs_out_of_data_goes_on_until_all_have():
    (first, _), (second, _) = steps_of(lambda worker: Dataset.range(2 + 6 * worker).batch(2))
    assert [len(step.values[0]) for step in first] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert [len(step.values[0]) for step in second] == [1] * 8


def test_a_worker_with_an_end_goes_on_with_those_that_have_none():
    answers = steps_of(lambda worker: (Dataset.range(2).repeat() if worker else Dataset.range(2)).batch(2), most=6)
    assert [[len(step.values[0]) for step in steps] for steps, _ in answers] == [[1, 1, 0, 0, 0, 0], [1] * 6]


@pytest.mark.parametrize("kwargs", [{}, {"uneven": "keep"}], ids=["usual", "keep"])
@pytest.mark.parametrize("at", [1, 5])
def test_an_exception_in_one_dataset_is_raised_by_all(at, kwargs):
    def make(worker):
        def checked(x):
            if worker == 1 and x == at:
                raise ValueError("bad record")
            return x

        return Dataset.range(8).map(checked).batch(2)

    (first, told), (second, own) = steps_of(make, **kwargs)
    assert type(own) is ValueError
    assert type(told) is CollectiveAborted
    assert str(told).startswith("the dataset of worker 1 raised ValueError: bad record. ")
    assert len(first) == len(second)


def test_without_an_exchange_nothing_is_compared():
    others = Others(Place(1, 2, 0, lambda count: count), True)
    others.agree(np.zeros(2), True)
    others.tell(ValueError("for nobody"))
    assert others.total(3) == 3


def test_what_went_wrong_here_counts_where_the_others_cannot_be_told():
    def gone(_):
        raise WorkerLostError("worker 0 is lost", 0)

    place = Place(1, 2, 1, gone, gone)
    Others(place, True).tell(ValueError("bad record"))

    class Broken:
        def __iter__(self):
            yield np.zeros(2)
            raise ValueError("bad record")

    dataset = by_itself(Dataset.from_generator(Broken().__iter__, output_types=np.float64))
    distributed = DistributedDataset(
        dataset.skip(1), 1, num_workers=2, worker_index=1, sum_over_workers=gone, exchange=gone
    )
    with pytest.raises(ValueError, match="bad record"):
        next(iter(distributed))


def test_an_iterator_goes_on_where_it_was_on_every_worker():
    with Workers(2) as workers:
        answers = workers.run("""
    Dataset = ringlet.data.Dataset
    distributed = strategy.experimental_distribute_dataset(Dataset.range(40).shuffle(40, seed=3).batch(4))
    first, later = iter(distributed), iter(distributed)
    skipped = [np.asarray(next(first).values[0]).tolist() for _ in range(3)]
    state = first.get_state()
    rest = [np.asarray(step.values[0]).tolist() for step in first]
    later.set_state(state)
    answer = [rest == [np.asarray(step.values[0]).tolist() for step in later], len(rest), sum(skipped + rest, [])]
    """)
    assert [answer[:2] for answer in answers] == [[True, 7]] * 2
    assert sorted(answers[0][2] + answers[1][2]) == list(range(40))
