"""Variables in shared memory: what is read, what updates make of it, and what is refused."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ringlet import _core
from ringlet.collectives.collective_dtypes import is_known
from ringlet.errors import DeadlineExceededError, InvalidArgumentError, SharedMemoryFullError
from tests.processes.harness import descriptors_of

ASSIGN, ADD, SUB, MUL, DIV, MIN, MAX = range(7)
UFUNCS = {ADD: np.add, SUB: np.subtract, MUL: np.multiply, DIV: np.divide, MIN: np.minimum, MAX: np.maximum}


def table_of(array, timeout_seconds=30.0):
    """A table that holds an array."""
    is_known(array.dtype)
    fd = _core.Table.create(array.shape, array.dtype)
    table = _core.Table(fd, timeout_seconds)
    os.close(fd)
    table.update(ASSIGN, array)
    return table


@pytest.mark.parametrize("shape", [(), (7,), (0, 3), (2, 0), (5, 3), (3, 2000), (600, 2, 2)])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.float32, np.complex128])
def test_what_was_assigned_is_read(shape, dtype):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    table = table_of(array)
    result = table.read()
    np.testing.assert_array_equal(result, array)
    assert (result.dtype, table.shape, table.dtype, table.nbytes) == (array.dtype, shape, array.dtype, array.nbytes)


@pytest.mark.parametrize("op", UFUNCS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_updates_of_floats_are_those_of_numpy(op, dtype):
    random = np.random.default_rng(1)
    old, value = (random.uniform(0.5, 8, (700, 3)).astype(dtype) for _ in range(2))
    table = table_of(old)
    table.update(op, value)
    wide = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    np.testing.assert_array_equal(table.read(), UFUNCS[op](old.astype(wide), value.astype(wide)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_integers_wrap(dtype):
    most, two = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype), np.array([2, 2], dtype)
    for op in (ADD, SUB, MUL):
        table = table_of(most)
        table.update(op, two)
        np.testing.assert_array_equal(table.read(), UFUNCS[op](most, two))


def test_integers_are_divided_towards_zero_and_by_zero_become_zero():
    table = table_of(np.array([-7, 7, 5, -(2**31)], np.int32))
    table.update(DIV, np.array([2, -2, 0, -1], np.int32))
    assert table.read().tolist() == [-3, -3, 0, -(2**31)]


def test_rows_are_read_and_updated_from_where_they_begin():
    table = table_of(np.zeros((3000, 2), np.int64))
    table.update(ADD, np.ones((1500, 2), np.int64), begin=1000)
    assert table.read().sum() == 3000
    np.testing.assert_array_equal(table.read(999, 1001), [[0, 0], [1, 1]])


def test_equal_indices_of_a_scatter_come_one_after_the_other():
    table = table_of(np.ones((4, 3)))
    table.scatter(ADD, np.array([1, 3, 1]), np.full((3, 3), 2.0))
    assert table.read()[:, 0].tolist() == [1, 5, 1, 3]
    table.scatter(ASSIGN, np.array([0, 0]), np.array([[1.0] * 3, [9.0] * 3]))
    assert table.read()[0].tolist() == [9, 9, 9]


def test_a_gather_has_the_shape_of_its_indices():
    array = np.arange(600.0).reshape(200, 3)
    indices = np.array([[199, 0], [7, 7]])
    np.testing.assert_array_equal(table_of(array).gather(indices), array[indices])


def test_an_index_out_of_range_is_named_and_nothing_is_written():
    table = table_of(np.zeros((5, 2)))
    for bad in (5, -1):
        with pytest.raises(InvalidArgumentError, match=rf"indices\[1\] = {bad} is not in \[0, 5\)"):
            table.scatter(ADD, np.array([0, bad]), np.ones((2, 2)))
    assert table.read().sum() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        # call, words of the error
        (lambda t: t.update(ADD, np.ones((4, 2), "f4")), r"value must be float64\[4,2\], not float32\[4,2\]"),
        (lambda t: t.update(ADD, np.ones((4, 3))), r"float64\[4,2\], not float64\[4,3\]"),
        (lambda t: t.update(ADD, np.ones((4, 2)), 1), "rows 1 to 5 are not within the 4 rows"),
        (lambda t: t.update(9, np.ones((4, 2))), "unknown number of a change of a table: 9"),
        (lambda t: t.read(3, 2), "rows 3 to 2"),
        (lambda t: t.read(out=np.ones((4, 2), order="F")), "out must be writeable"),
        (lambda t: t.gather(np.array([0], np.int32)), r"indices must be int64\[1\], not int32\[1\]"),
        (lambda t: t.scatter(ADD, np.array([0]), np.ones((2, 2))), r"values must be float64\[1,2\]"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(change, words):
    table = table_of(np.zeros((4, 2)))
    with pytest.raises(InvalidArgumentError, match=words):
        change(table)
    assert table.read().sum() == 0


def test_changes_that_a_dtype_does_not_have_are_refused():
    with pytest.raises(InvalidArgumentError, match="add is not supported for bool"):
        table_of(np.ones(2, bool)).update(ADD, np.ones(2, bool))
    with pytest.raises(InvalidArgumentError, match="min is not supported for complex64"):
        table_of(np.ones(2, np.complex64)).update(MIN, np.ones(2, np.complex64))


def test_results_are_read_only_and_outs_are_filled():
    table = table_of(np.arange(4.0))
    out = np.zeros(4)
    assert table.read(out=out) is out
    assert out.tolist() == [0, 1, 2, 3]
    assert not table.read().flags.writeable


def test_completed_updates_are_counted():
    table = table_of(np.zeros(4))
    table.scatter(ADD, np.array([1]), np.ones(1))
    assert table.version() == 2


def test_a_descriptor_of_anything_else_is_refused():
    with Path(__file__).open("rb") as file, pytest.raises(SharedMemoryFullError):
        _core.Table(file.fileno())
    table = table_of(np.zeros(4))
    size = os.fstat(table.fileno()).st_size
    fake = _core.Table.create((size,), np.dtype("u1"))
    os.pwrite(fake, b"\xff" * 64, 0)
    with pytest.raises(InvalidArgumentError, match="created by another program"):
        _core.Table(fake)
    os.close(fake)


def test_a_file_of_which_parts_have_no_memory_is_refused():
    table = table_of(np.zeros((1000, 100)))
    fake = os.memfd_create("fake", os.MFD_ALLOW_SEALING)
    os.pwrite(fake, os.pread(table.fileno(), 4096, 0), 0)
    os.truncate(fake, os.fstat(table.fileno()).st_size)
    fcntl.fcntl(fake, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    with pytest.raises(InvalidArgumentError, match="no memory was reserved for a part of it"):
        _core.Table(fake)
    os.close(fake)


NUM_MUTATIONS = 200_000 if os.environ.get("RINGLET_CI_NIGHTLY") else 2_000


# Of a table in memory: the header, then the seats of its writers, then the words of its chunks; see layout.hpp.
HEADER_BYTES, SEAT_BYTES, NUM_SEATS, NUM_WORDS = 640, 64, 64, 40
SEATS_END = HEADER_BYTES + NUM_SEATS * SEAT_BYTES
CONTROL_BYTES = SEATS_END + 8 * NUM_WORDS


def damages(chance):
    """Places and numbers to write there: any, or what a writer would leave that has ended and says nonsense."""
    numbers = (0, 1, 63, 64, 2**16, 2**32 - 1, 2**63, 2**64 - 1)
    anything = [chance.choice(numbers) if chance.random() < 0.5 else chance.getrandbits(64) for _ in range(4)]
    if chance.random() < 0.5:
        end = chance.choice([64, HEADER_BYTES, SEATS_END, CONTROL_BYTES])
        return [(chance.randrange(0, end, 8), value) for value in anything[: chance.randint(1, 3)]]
    seat, chunk = chance.randrange(NUM_SEATS), chance.choice([0, NUM_WORDS - 1, chance.randrange(NUM_WORDS)])
    nobody = (2**22 + 1) << 32 | 5
    said = [nobody, chunk if chance.random() < 0.8 else anything[0], *anything[1:]]
    places = [HEADER_BYTES + seat * SEAT_BYTES + 8 * i for i in range(5)]
    return [*zip(places, said, strict=True), (SEATS_END + 8 * chunk, (seat + 1) << 1 | chance.randint(0, 1))]


def use_damaged_tables(chance, num_mutations):
    array = np.ones((NUM_WORDS, 2500), np.uint8)
    fd = _core.Table.create(array.shape, array.dtype)
    original = os.pread(fd, CONTROL_BYTES, 0)
    for _ in range(num_mutations):
        os.pwrite(fd, original, 0)
        for place, value in damages(chance):
            os.pwrite(fd, value.to_bytes(8, "little"), place)
        with contextlib.suppress(InvalidArgumentError, SharedMemoryFullError, DeadlineExceededError):
            table = _core.Table(fd, 1e-6)
            assert table.read().nbytes == table.nbytes
            table.update(ASSIGN, np.ones(table.shape, table.dtype))
    os.close(fd)


def test_a_damaged_table_is_refused_or_used_and_nothing_beyond_it_is_touched():
    child = os.fork()  # which a fault would end
    if child == 0:
        use_damaged_tables(random.Random(3), NUM_MUTATIONS)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_more_memory_than_there_is_is_refused_before_any_is_taken():
    with pytest.raises(SharedMemoryFullError, match="cannot reserve"):
        _core.Table.create((2**40,), np.dtype("f8"))


def test_a_table_leaves_no_descriptor_behind():
    before = descriptors_of(os.getpid())
    for _ in range(3):
        table = table_of(np.zeros(4))
    del table
    assert descriptors_of(os.getpid()) == before


def endless_adds(table, value):
    """The number of a child process that updates until it is killed."""
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                table.update(ADD, value)
        finally:
            os._exit(1)
    return pid


def test_what_a_killed_process_was_changing_is_whole():
    table = table_of(np.zeros((3, 4000), np.int64))
    for _ in range(10):
        pid = endless_adds(table, np.ones((3, 4000), np.int64))
        time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        table.update(ADD, np.ones((3, 4000), np.int64))
        rows = table.read()
        assert (rows == rows[:, :1]).all()


def test_a_stopped_writer_is_waited_for_until_the_deadline():
    value = np.ones((1, 500_000), np.int64)
    table = table_of(value, timeout_seconds=0.1)
    pid = endless_adds(table, value)
    try:
        for _ in range(100):
            os.kill(pid, signal.SIGSTOP)
            os.waitpid(pid, os.WUNTRACED)
            try:
                table.update(ADD, value)
            except DeadlineExceededError as error:
                text = str(error)
                break
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.003)
        else:
            pytest.fail("it was never stopped in the middle of an update")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    table.update(ADD, value)
    assert f"process {pid}, which is stopped," in text
