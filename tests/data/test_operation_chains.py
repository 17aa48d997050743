"""Chains of operations against plain Python, and saved and restored anywhere."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset, TensorSpec
from tests.data import state_cases
from tests.data.state_cases import through_a_file

# A padded batch must know the number of dimensions.
SPEC = TensorSpec((), np.int64)
SOURCES = {
    **state_cases.SOURCES,
    "generator": lambda: Dataset.from_generator(state_cases.count_up, output_signature=SPEC),
}


def joined(arguments):
    """The element that a function was called on, from its arguments."""
    return arguments if len(arguments) > 1 else arguments[0]


def total(element):
    """The sum over an element's leaves."""
    return sum(map(total, element)) if isinstance(element, tuple) else int(element)


def plain(element):
    """The element with Python's own numbers."""
    return tuple(map(plain, element)) if isinstance(element, tuple) else element.item()


def is_kept(*arguments):
    return bool(total(joined(arguments)) % 3)


def is_small(*arguments):
    return total(joined(arguments)) < 25


def times(*arguments):
    """A dataset that holds an element as often as its sum says, up to three times."""
    element = joined(arguments)
    return Dataset.from_tensors(element).repeat(total(element) % 4)


def running(state, element):
    return state + total(element), (element, state)


def times_of(elements):
    return [[element] * (total(element) % 4) for element in elements]


def chained(lists):
    return list(itertools.chain.from_iterable(lists))


def interleaved(lists, cycle_length, block_length):
    """What an interleave gives, after its description: slots visited in turn."""
    waiting, slots, out, at = [list(x) for x in lists], [None] * cycle_length, [], 0
    while waiting or any(slot is not None for slot in slots):
        if slots[at] is None and waiting:
            slots[at] = waiting.pop(0)
        if slots[at] is not None:
            visit, slots[at] = slots[at][:block_length], slots[at][block_length:]
            out += visit
            if len(visit) < block_length:
                slots[at] = None
        at = (at + 1) % cycle_length
    return out


def windows(elements, size, shift, stride, drop_remainder):
    starts = range(0, len(elements), shift)
    whole = [elements[s : s + (size - 1) * stride + 1 : stride] for s in starts]
    return [w for w in whole if len(w) == size or not drop_remainder]


def running_of(elements):
    before = [0, *itertools.accumulate(map(total, elements))]
    return list(zip(elements, before, strict=False))


def window_back(*window):
    """The elements of a window, as they were."""
    return Dataset.zip(joined(window))


# name: (operation, the same on a list)
OPERATIONS = {
    "skip(2)": (lambda d: d.skip(2), lambda e: e[2:]),
    "skip(300)": (lambda d: d.skip(300), lambda e: e[300:]),
    "skip(0)": (lambda d: d.skip(0), lambda e: e),
    "take(5)": (lambda d: d.take(5), lambda e: e[:5]),
    "repeat(2)": (lambda d: d.repeat(2), lambda e: e * 2),
    "itself again": (lambda d: d.concatenate(d), lambda e: e + e),
    "its first again": (lambda d: d.concatenate(d.take(2)), lambda e: e + e[:2]),
    "its rest in front": (lambda d: d.skip(3).concatenate(d), lambda e: e[3:] + e),
    "enumerate": (lambda d: d.enumerate(3), lambda e: list(enumerate(e, 3))),
    "beside itself": (lambda d: Dataset.zip(d, d), lambda e: [(x, x) for x in e]),
    "beside numbers": (lambda d: Dataset.zip((Dataset.range(7), d)), lambda e: list(zip(range(7), e, strict=False))),
    "beside its rest": (lambda d: Dataset.zip(d, d.skip(1)), lambda e: list(itertools.pairwise(e))),
    "filter": (lambda d: d.filter(is_kept), lambda e: [x for x in e if total(x) % 3]),
    "take_while": (
        lambda d: d.take_while(is_small),
        lambda e: list(itertools.takewhile(lambda x: total(x) < 25, e)),
    ),
    "flat_map": (lambda d: d.flat_map(times), lambda e: chained(times_of(e))),
    "interleave(2)": (
        lambda d: d.interleave(times, cycle_length=2),
        lambda e: interleaved(times_of(e), 2, 1),
    ),
    "interleave(3, 2)": (
        lambda d: d.interleave(times, cycle_length=3, block_length=2),
        lambda e: interleaved(times_of(e), 3, 2),
    ),
    "interleave(3, 2, threads)": (
        lambda d: d.interleave(times, cycle_length=3, block_length=2, num_parallel_calls=2),
        lambda e: interleaved(times_of(e), 3, 2),
    ),
    "scan": (lambda d: d.scan(0, running), running_of),
    "window(3, 2)": (
        lambda d: d.window(3, shift=2).flat_map(window_back),
        lambda e: chained(windows(e, 3, 2, 1, False)),
    ),
    "window(2, 3, 2, whole)": (
        lambda d: d.window(2, 3, 2, drop_remainder=True).flat_map(window_back),
        lambda e: chained(windows(e, 2, 3, 2, True)),
    ),
    "batch, unbatch": (lambda d: d.batch(3).unbatch(), lambda e: e),
    "padded_batch, unbatch": (lambda d: d.padded_batch(2).unbatch(), lambda e: e),
    "cache": (lambda d: d.cache(), lambda e: e),
    "cache, repeat": (lambda d: d.cache().repeat(2), lambda e: e * 2),
    "ignore_errors": (lambda d: d.ignore_errors(), lambda e: e),
    "prefetch": (lambda d: d.prefetch(2), lambda e: e),
}
# What plain Python has no answer for: where elements are random.
RANDOM = {
    "shuffle(4)": lambda d: d.shuffle(4),
    "shuffle(100), cache, repeat": lambda d: d.shuffle(100).cache().repeat(2),
    "beside itself, shuffled": lambda d: d.shuffle(5).apply(lambda s: Dataset.zip(s, s)),
    "sample": lambda d: Dataset.sample_from_datasets([d, d.take(3)]),
    "choose": lambda d: Dataset.choose_from_datasets([d, d.skip(2)], Dataset.range(2).shuffle(2).repeat(), False),
}

names = st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=4)
sources = st.sampled_from(sorted(SOURCES))


def first_elements(source):
    return [x + 1 for x in range(11)] if source in ("elements", "threads") else list(range(11))


def build(source, operations):
    dataset = SOURCES[source]()
    for name in operations:
        dataset = RANDOM[name](dataset) if name in RANDOM else OPERATIONS[name][0](dataset)
    return dataset


@given(sources, names)
def test_a_chain_gives_what_plain_python_gives(source, operations):
    expected = first_elements(source)
    for name in operations:
        expected = OPERATIONS[name][1](expected)
    dataset = build(source, operations)
    assert [plain(x) for x in dataset] == expected
    assert [plain(x) for x in dataset] == expected  # and again
    assert dataset.cardinality() in (len(expected), -2)


@given(names)
def test_rows_of_arrays_give_what_elements_give_and_so_do_their_batches(operations):
    rows, elements = build("rows", operations), build("iterable", operations)
    assert [plain(x) for x in rows.batch(4).unbatch()] == [plain(x) for x in elements]


@given(
    sources,
    st.lists(st.sampled_from(sorted({**OPERATIONS, **RANDOM})), min_size=1, max_size=3),
    st.data(),
)
def test_a_restored_iterator_goes_on_where_it_was_saved(source, operations, data):
    whole = iter(build(source, operations))
    at = data.draw(st.integers(0, 12), "saved after")
    begun = list(itertools.islice(whole, at))
    state = through_a_file(whole.get_state())
    rest = [plain(x) for x in itertools.islice(whole, 60)]
    restored = iter(build(source, operations))
    restored.set_state(state)
    if data.draw(st.booleans(), "saved at once again"):
        state, again = through_a_file(restored.get_state()), iter(build(source, operations))
        again.set_state(state)
        restored = again
    assert [plain(x) for x in itertools.islice(restored, 60)] == rest
    assert len(begun) <= at
    whole.close()
    restored.close()


@pytest.mark.parametrize("operation", sorted({**OPERATIONS, **RANDOM}))
def test_closing_early_ends_the_iteration(operation):
    with iter(build("threads", [operation])) as iterator:
        next(iterator, None)
    assert list(iterator) == []
    assert iterator.get_state()  # that of an iterator without more elements


@pytest.mark.parametrize("operation", sorted({**OPERATIONS, **RANDOM}))
def test_an_empty_dataset_stays_empty_or_is_repeated_without_end(operation):
    empty = Dataset.range(0).map(lambda x: x)
    made = RANDOM[operation](empty) if operation in RANDOM else OPERATIONS[operation][0](empty)
    assert list(itertools.islice(made, 5)) == []


@pytest.mark.parametrize(
    "operation",
    ["skip(2)", "take(5)", "repeat(2)", "itself again", "its rest in front", "enumerate", "beside itself", "cache"],
)
def test_slices_of_arrays_stay_slices_of_arrays(operation):
    assert OPERATIONS[operation][0](Dataset.range(9)).node.table is not None


def test_views_survive_a_chain_of_operations_on_rows():
    rows = np.arange(24.0).reshape(12, 2)
    dataset = Dataset.from_tensor_slices(rows)
    chained_rows = Dataset.zip(dataset, dataset).enumerate().skip(2).take(6).batch(3)
    for _, (left, right) in chained_rows:
        assert np.shares_memory(left, rows)
        assert np.shares_memory(right, rows)
