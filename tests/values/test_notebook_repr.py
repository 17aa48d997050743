"""What a notebook shows of a distributed value: a table that is read here as a browser reads it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.values import DistributedValues, Mirrored, PerReplica

VOID = {"br", "hr", "img"}


class Table(HTMLParser):
    """Rows of cells, the caption, and every tag and attribute; refuses tags that are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.caption = ""
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._open[-1] == "caption":
            self.caption += data


def table(value: Any) -> Table:
    return Table(value._repr_html_())


def test_every_replica_has_a_row_with_what_it_holds():
    shown = table(PerReplica([np.arange(3, dtype=np.float32), np.ones((2, 2), np.int8)]))
    assert shown.rows == [
        ["replica", "device", "type", "shape", "value"],
        ["0", "host memory", "float32", "(3,)", "[0. 1. 2.]"],
        ["1", "host memory", "int8", "(2, 2)", "[[1 1] [1 1]]"],
    ]


@pytest.mark.parametrize(
    ("value", "caption"),
    [
        (PerReplica([1, 2]), "PerReplica of 2 replicas"),
        (Mirrored([np.ones(1)] * 3), "Mirrored of 3 replicas"),
        (DistributedValues(["a"]), "DistributedValues of 1 replica"),
    ],
)
def test_the_caption_says_what_it_is(value, caption):
    assert table(value).caption == caption


@pytest.mark.parametrize(
    ("component", "kind", "shape", "preview"),
    [
        (2.5, "float", "", "2.5"),
        (None, "NoneType", "", "None"),
        ("text", "str", "", "'text'"),
        ((1, "x"), "tuple", "", "(1, 'x')"),
        (np.float64(0.25), "float64", "()", "0.25"),
        (np.zeros((0, 3)), "float64", "(0, 3)", "[]"),
    ],
)
def test_components_of_any_kind_are_shown(component, kind, shape, preview):
    assert table(PerReplica([component])).rows[1][2:] == [kind, shape, preview]


def test_text_of_components_is_escaped():
    shown = table(PerReplica(["<script>alert('&amp;')</script>", '"><img src=x>']))
    assert shown.rows[1][-1] == repr("<script>alert('&amp;')</script>")
    assert not shown.tags & {"script", "img"}


@pytest.mark.parametrize("component", [np.arange(10**6), "x" * 10**6, list(range(10**5)), {i: i for i in range(10**5)}])
def test_the_preview_of_something_large_is_short(component):
    assert len(table(PerReplica([component])).rows[1][-1]) <= 80


def test_an_object_that_cannot_be_shown_spoils_only_its_own_cell():
    class Broken:
        @property
        def dtype(self) -> str:
            raise RuntimeError

        def __repr__(self) -> str:
            raise OSError("no")

    shown = table(PerReplica([Broken(), 1]))
    assert "OSError" in shown.rows[1][-1] or "Broken" in shown.rows[1][-1]
    assert shown.rows[2][-1] == "1"


def test_nothing_is_loaded_and_no_colour_is_set():
    source = PerReplica([1, 2])._repr_html_()
    shown = Table(source)
    assert shown.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert shown.attributes <= {"style", "scope"}
    for word in ("http", "url(", "#", "rgb", "black", "white"):
        assert word not in source


def test_devices_are_those_that_components_say_or_the_current_strategy_has():
    class OnDevice:
        device = "/job:localhost/replica:0/task:0/device:CPU:3"

    assert [row[1] for row in table(PerReplica([OnDevice(), 1])).rows[1:]] == ["CPU:3", "host memory"]
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:2"])
    with strategy.scope():
        assert [row[1] for row in table(PerReplica([1, 2])).rows[1:]] == ["CPU:0", "CPU:2"]
        assert [row[1] for row in table(PerReplica([1, 2, 3])).rows[1:]] == ["host memory"] * 3


def test_a_mirrored_value_shows_its_own_table_and_not_that_of_its_component():
    class WithTable:
        def _repr_html_(self) -> str:
            return "<p>component</p>"

    assert table(Mirrored([WithTable()])).caption == "Mirrored of 1 replica"


@pytest.mark.parametrize("synchronization", ["ON_WRITE", "ON_READ"])
def test_a_distributed_variable_shows_its_copies_and_how_they_are_written(synchronization):
    with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        variable = ringlet.Variable(
            np.arange(2.0), name="v", aggregation=ringlet.VariableAggregation.SUM,
            synchronization=ringlet.VariableSynchronization[synchronization],
        )  # fmt: skip
    shown = table(variable)
    assert f"'v:0' of 2 replicas, synchronization {synchronization}, aggregation SUM" in shown.caption
    assert shown.rows[1:] == [[str(i), f"CPU:{i}", "float64", "(2,)", "[0. 1.]"] for i in range(2)]


def test_a_strategy_and_a_dataset_show_what_they_are():
    shown = table(ringlet.MirroredStrategy(["CPU:0", "CPU:2"]))
    assert (shown.caption, shown.rows) == (
        "MirroredStrategy", [["replicas in sync", "2"], ["devices", "CPU:0, CPU:2"]],
    )  # fmt: skip
    shown = table(ringlet.data.Dataset.range(10).batch(4))
    assert shown.caption == "Dataset"
    assert shown.rows[1] == ["elements", "3"]
    assert shown.rows[2][0] == "element_spec"
    shown = table(ringlet.data.Dataset.range(10).map(lambda x: "<script>").repeat())
    assert [row[0] for row in shown.rows] == ["operations", "elements"]
    assert shown.rows[1] == ["elements", "infinite"]
    assert shown.tags <= {"table", "caption", "tbody", "tr", "th", "td"}
