"""progress gives elements as they are, and shows on the chief how far they are."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset
from tests.rank_zero.test_process_role import config


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def seconds(monkeypatch):
    """A clock that goes one second on each time it is read."""
    now = iter(range(1_000_000))
    monkeypatch.setattr(sys.modules["ringlet.rank_zero.progress"], "_clock", lambda: float(next(now)))


def test_elements_are_given_as_they_are():
    elements = [np.ones(2), None, "text", object()]
    for file in (None, io.StringIO(), Terminal()):
        given = list(ringlet.progress(elements, file=file, line_seconds=0.0))
        assert all(one is other for one, other in zip(given, elements, strict=True))


@pytest.mark.parametrize(
    ("iterable", "expected"),
    [
        (range(3), [0, 1, 2]),
        ((x for x in "ab"), ["a", "b"]),
        (Dataset.range(2), [0, 1]),
        ({"a": 1}, ["a"]),
        ([], []),
    ],
    ids=["range", "generator", "dataset", "dictionary", "nothing"],
)
def test_anything_can_be_iterated(iterable, expected):
    assert list(ringlet.progress(iterable, file=Terminal())) == expected


def test_a_distributed_dataset_says_how_many_steps_it_has():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    file = io.StringIO()
    steps = strategy.experimental_distribute_dataset(Dataset.range(8).batch(4))
    assert len(list(ringlet.progress(steps, "steps", file=file, line_seconds=1000))) == 2
    assert file.getvalue().startswith("steps: 2/2, ")


@pytest.mark.parametrize("line_seconds", [None, 0.0])
def test_others_than_the_chief_show_nothing(monkeypatch, line_seconds):
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))
    file = Terminal()
    assert list(ringlet.progress(range(3), file=file, line_seconds=line_seconds)) == [0, 1, 2]
    assert file.getvalue() == ""


def test_there_is_one_bar_for_all_replicas():
    file = io.StringIO()
    ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).run(
        lambda: list(ringlet.progress(range(2), file=file, line_seconds=9))
    )
    assert file.getvalue().count("2/2") == 1


def test_nothing_is_written_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv("RINGLET_PROGRESS_SECONDS", raising=False)
    file = io.StringIO()
    assert list(ringlet.progress(range(3), file=file)) == [0, 1, 2]
    assert file.getvalue() == ""


def test_lines_are_written_where_they_were_asked_for(seconds):
    file = io.StringIO()
    list(ringlet.progress(range(4), "epochs", file=file, line_seconds=2))
    assert file.getvalue().splitlines() == [
        "epochs: 2/4 (50 %), 1.0/s, 2 s left",
        "epochs: 4/4, 5.0 s",
    ]


def test_the_environment_asks_for_lines_of_long_loops(seconds, monkeypatch):
    monkeypatch.setenv("RINGLET_PROGRESS_SECONDS", "3")
    file = io.StringIO()
    list(ringlet.progress(range(2), "short", file=file))
    list(ringlet.progress(range(5), "long", file=file))
    assert file.getvalue().splitlines() == ["long: 3/5 (60 %), 1.0/s, 2 s left", "long: 5/5, 6.0 s"]


@pytest.mark.parametrize("text", ["often", "-1", "nan", "inf"])
def test_what_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv("RINGLET_PROGRESS_SECONDS", text)
    with pytest.raises(ValueError, match=rf"RINGLET_PROGRESS_SECONDS is a number of seconds.*'{text}'"):
        ringlet.progress(range(3), file=io.StringIO())


def test_everybody_can_close_it(monkeypatch):
    for environ in ("{}", config("worker", 0)):
        monkeypatch.setenv("TF_CONFIG", environ)
        for file in (io.StringIO(), Terminal()):
            elements = ringlet.progress(range(3), file=file)
            assert next(elements) == 0
            elements.close()
            assert list(elements) == []


def test_a_bar_that_fails_while_it_is_drawn_leaves_no_other_one_without_a_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    file, again = Terminal(), Terminal()
    broken = ringlet.progress(range(3), file=file)
    monkeypatch.setattr(sys.modules["ringlet.rank_zero.progress"], "_REDRAW_SECONDS", 0.0)
    elements = ringlet.progress(range(3), file=file)
    next(broken), next(elements)
    file.close()
    assert len(list(elements)) == len(list(broken)) == 2
    list(ringlet.progress(range(3), file=again))
    assert "3/3" in again.getvalue()
    assert sys.modules["ringlet.rank_zero.progress_backends"]._LineBar._open == []


def test_a_terminal_is_drawn_on_at_most_ten_times_a_second(monkeypatch):
    now = iter(np.arange(0, 100, 0.01))
    shown = []

    class Bar:
        def show(self, count, seconds):
            shown.append(seconds)

        end = show

    monkeypatch.setattr(sys.modules["ringlet.rank_zero.progress"], "_clock", lambda: float(next(now)))
    monkeypatch.setattr(sys.modules["ringlet.rank_zero.progress"], "open_bar", lambda *_: Bar())
    list(ringlet.progress(range(100), file=Terminal()))
    assert len(shown) <= 12
    assert np.diff(shown[:-1]).min() > 0.099


def test_a_loop_that_is_left_ends_its_bar():
    file = io.StringIO()
    for element in ringlet.progress(range(10), file=file, line_seconds=1000):
        if element == 2:
            break
    assert file.getvalue().startswith("2/10, ")


def test_an_error_of_the_iterable_passes_through():
    def broken():
        yield 1
        raise KeyError("weights")

    with pytest.raises(KeyError, match="weights"):
        list(ringlet.progress(broken(), file=Terminal()))


def test_the_number_of_elements_may_be_given():
    file = io.StringIO()
    list(ringlet.progress(iter("abc"), total=3, file=file, line_seconds=1000))
    assert file.getvalue().startswith("3/3, ")


@pytest.mark.parametrize(
    ("iterable", "size"),
    [(range(3), 3), (Dataset.range(5), 5), (Dataset.range(5).repeat(), None), (iter([]), None), (Dataset, None)],
    ids=["range", "dataset", "infinite dataset", "iterator", "class"],
)
def test_the_size_is_what_the_iterable_says(iterable, size):
    assert sys.modules["ringlet.rank_zero.progress"]._size_of(iterable) == size


@pytest.mark.parametrize("file", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_what_was_closed_ends_no_program(file):
    file.close()
    assert list(ringlet.progress(range(2), file=file)) == [0, 1]
