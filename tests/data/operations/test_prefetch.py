"""Elements made ahead in a thread, and the end of that thread."""

from __future__ import annotations

import contextvars
import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ringlet.data import AUTOTUNE, Dataset
from ringlet.data.operations.prefetch import WORTH_A_THREAD_BYTES

DEADLINE_SECONDS = 30


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "ringlet-prefetch"]


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    if prefetch_threads():  # which the iterators end that a reference cycle keeps
        gc.collect()
    wait_until(lambda: not prefetch_threads())


def mapped(size, function=lambda x: x):
    return Dataset.range(size).map(function)


@pytest.mark.parametrize("buffer_size", [0, 1, 2, 100, AUTOTUNE])
@pytest.mark.parametrize("size", [0, 1, 50])
def test_elements_are_the_same_in_the_same_order(size, buffer_size):
    dataset = mapped(size).prefetch(buffer_size)
    assert [int(x) for x in dataset] == list(range(size))
    assert dataset.cardinality() == size
    assert dataset.element_spec == mapped(size).element_spec


def test_no_more_elements_are_made_ahead_than_the_buffer_holds():
    made = []
    iterator = iter(mapped(100, lambda x: made.append(x) or x).prefetch(3))
    assert made == []
    next(iterator)
    wait_until(lambda: len(made) == 4)
    iterator.close()
    assert len(made) == 4


def test_elements_are_made_in_another_thread_while_the_reader_does_something_else():
    second_is_made = threading.Event()
    threads = []

    def function(x):
        threads.append(threading.current_thread())
        if x == 1:
            second_is_made.set()
        return x

    with iter(mapped(5, function).prefetch(1)) as iterator:
        next(iterator)
        assert second_is_made.wait(DEADLINE_SECONDS)
        assert threading.current_thread() not in threads


def test_a_buffer_of_zero_uses_no_thread():
    threads = set()
    list(mapped(5, lambda x: threads.add(threading.current_thread()) or x).prefetch(0))
    assert threads == {threading.current_thread()}


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.from_tensor_slices(np.zeros((1000, 1000))).batch(100),
        Dataset.from_tensor_slices(np.zeros((100, 10))).shuffle(100).batch(10),
        Dataset.range(1000).batch(10),
        Dataset.range(1000).shuffle(1000),
    ],
)
def test_views_and_small_batches_are_made_without_a_thread(dataset):
    iterator = iter(dataset.prefetch(2))
    next(iterator)
    assert prefetch_threads() == []


def test_large_batches_that_are_gathered_are_made_in_a_thread():
    rows = WORTH_A_THREAD_BYTES // 8
    iterator = iter(Dataset.range(4 * rows).shuffle(4 * rows).batch(rows).prefetch(1))
    next(iterator)
    assert len(prefetch_threads()) == 1
    iterator.close()


def test_closing_ends_the_thread_and_the_elements():
    iterator = iter(mapped(100).prefetch(2))
    next(iterator)
    iterator.close()
    assert prefetch_threads() == []
    assert list(iterator) == []


def test_dropping_the_iterator_ends_the_thread():
    iterator = iter(mapped(100).prefetch(2))
    next(iterator)
    del iterator
    gc.collect()
    assert prefetch_threads() == []


def test_breaking_out_of_a_loop_ends_the_thread():
    for x in mapped(100).prefetch(2):
        if x == 3:
            break
    gc.collect()
    assert prefetch_threads() == []


def test_an_iterator_in_a_cycle_is_collected_with_its_thread():
    holder = [iter(mapped(100).prefetch(2))]
    next(holder[0])
    holder.append(holder)
    del holder
    gc.collect()
    assert prefetch_threads() == []


def test_the_thread_ends_with_the_last_element():
    iterator = iter(mapped(3).prefetch(5))
    assert len(list(iterator)) == 3
    wait_until(lambda: not prefetch_threads())
    assert list(iterator) == []


def test_an_exception_surfaces_in_its_place_ends_the_thread_and_can_be_passed():
    def function(x):
        if x == 2:
            raise KeyError("two")
        return x

    iterator = iter(mapped(5, function).prefetch(4))
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    with pytest.raises(KeyError, match="two") as caught:
        next(iterator)
    assert "element 2" in caught.value.__notes__[0]
    wait_until(lambda: not prefetch_threads())
    assert [int(x) for x in iterator] == [3, 4]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_reaches_the_reader(error):
    def function(_):
        raise error

    with pytest.raises(type(error)):
        next(iter(mapped(5, function).prefetch(2)))


def test_an_exception_keeps_no_thread_alive_while_it_is_held():
    def function(_):
        raise KeyError

    with pytest.raises(KeyError) as caught:
        list(mapped(5, function).prefetch(2))
    wait_until(lambda: not prefetch_threads())
    del caught


def test_one_prefetch_behind_another_ends_with_it():
    iterator = iter(mapped(100).prefetch(2).map(lambda x: x).prefetch(2))
    next(iterator)
    assert len(prefetch_threads()) == 2
    iterator.close()
    assert prefetch_threads() == []


def test_a_take_behind_it_ends_the_thread_with_its_last_element():
    assert len(list(mapped(100).repeat().prefetch(2).take(5))) == 5
    assert prefetch_threads() == []


def test_each_round_of_a_repeat_has_its_own_thread_and_only_that():
    most = max(len(prefetch_threads()) for _ in mapped(5).prefetch(2).repeat(10))
    assert most <= 1


def test_closing_in_one_thread_ends_the_wait_of_another():
    may_go_on, is_waiting = threading.Event(), threading.Event()

    def function(x):
        is_waiting.set()
        assert may_go_on.wait(DEADLINE_SECONDS)
        return x

    iterator = iter(mapped(5, function).prefetch(1))
    found = []
    reader = threading.Thread(target=lambda: found.extend(iterator))
    reader.start()
    assert is_waiting.wait(DEADLINE_SECONDS)
    closer = threading.Thread(target=iterator.close)
    closer.start()
    reader.join(DEADLINE_SECONDS)
    assert found == []
    may_go_on.set()
    closer.join(DEADLINE_SECONDS)
    assert not reader.is_alive()
    assert not closer.is_alive()


@pytest.mark.parametrize("num_readers", [2, 4, 8])
def test_readers_in_many_threads_share_the_elements_and_all_come_to_the_end(num_readers):
    iterator = iter(mapped(2000).prefetch(2))
    found = []
    readers = [threading.Thread(target=lambda: found.extend(iterator), daemon=True) for _ in range(num_readers)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(DEADLINE_SECONDS)
    assert not any(reader.is_alive() for reader in readers)
    assert sorted(map(int, found)) == list(range(2000))


def test_a_reader_that_asks_on_at_once_after_every_exception_never_waits_for_a_thread_that_has_ended():
    def function(x):
        raise KeyError(int(x))

    iterator, errors = iter(mapped(2000, function).prefetch(2)), []

    def read():
        while True:
            try:
                next(iterator)
            except KeyError as error:
                errors.append(error.args[0])
            except StopIteration:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(DEADLINE_SECONDS)
    assert not reader.is_alive()
    assert errors == list(range(2000))


def test_the_function_sees_the_context_of_the_reader():
    setting = contextvars.ContextVar("setting", default="outside")

    def read():
        setting.set("inside")
        with np.errstate(divide="raise"):
            return next(iter(mapped(1, lambda x: (setting.get(), np.geterr()["divide"])).prefetch(1)))

    assert contextvars.copy_context().run(read) == ("inside", "raise")


def test_elements_that_were_given_out_are_not_kept_alive():
    counts = {"now": 0, "most": 0}

    class Counted(np.ndarray):
        def __del__(self):
            counts["now"] -= 1

    def function(_):
        counts["now"] += 1
        counts["most"] = max(counts["most"], counts["now"])
        return np.zeros(3).view(Counted)

    for _ in mapped(200, function).prefetch(2):
        pass
    # Two wait, one is being made, and the reader holds one while it takes the next.
    assert counts["most"] <= 4


def run_python(code):
    """Run code in an interpreter of its own and give how it ended."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


PRELUDE = """
import os, sys, time, threading
from ringlet.data import Dataset
iterator = iter(Dataset.range(10).map(lambda x: x).repeat().prefetch(2))
next(iterator)
"""


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit()",
        "cycle = [iterator]; cycle.append(cycle); del iterator",
        "import threading; threading.Thread(target=lambda: next(iterator)).start()",
    ],
)
def test_the_interpreter_exits_with_an_iterator_open(ending):
    done = run_python(PRELUDE + ending)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_interpreter_exits_while_a_function_is_stuck():
    code = """
import threading, time
from ringlet.data import Dataset
is_stuck = threading.Event()
iterator = iter(Dataset.range(10).map(lambda x: x if x == 0 else is_stuck.set() or time.sleep(1000)).prefetch(2))
next(iterator)
is_stuck.wait()
"""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_is_told_to_make_its_own_iterator_and_exits():
    code = (
        PRELUDE
        + """
import warnings
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    try:
        for _ in range(10):
            next(iterator)
    except RuntimeError as error:
        print("Create a new iterator in the child process" in str(error), flush=True)
    iterator.close()
    del iterator
    print(next(iter(Dataset.range(3).map(lambda x: x + 5).prefetch(1))), flush=True)
    sys.exit()
os.waitpid(child, 0)
next(iterator)
"""
    )
    done = run_python(code)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "True\n5\n")
