from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.graph.iteration_context import IterationContext
from ringlet.data.readers.file_names import name_list, names_node, text_name


def names_of(filenames):
    return [text_name(name) for name in names_node(filenames).open(IterationContext())]


@pytest.mark.parametrize(
    ("filenames", "names"),
    [
        # as passed, as text
        ("a", ["a"]),
        (b"a", ["a"]),
        (Path("a") / "b", ["a/b"]),
        (["a", b"b", Path("c")], ["a", "b", "c"]),
        ((), []),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([[b"a"], [b"b"]], object), ["a", "b"]),
        ([["a"], ["b", "c"]], ["a", "b", "c"]),
        (Dataset.from_tensor_slices(["b", "a"]), ["b", "a"]),
        (Dataset.from_tensor_slices(["b", "a"]).map(lambda x: x + ".txt"), ["b.txt", "a.txt"]),
    ],
)
def test_names_come_as_one_several_or_a_dataset(filenames, names):
    assert names_of(filenames) == names


@pytest.mark.parametrize("filenames", [1, [1, 2], None, Dataset.range(2), Dataset.from_tensor_slices([["a"]])])
def test_what_is_no_name_is_refused(filenames):
    with pytest.raises(TypeError, match="`filenames` must be a string, a path"):
        names_node(filenames)


def test_an_element_that_is_no_name_is_refused_when_it_comes():
    with pytest.raises(TypeError, match="got 7"):
        text_name(7)
    assert text_name(np.array("a")) == "a"
    assert name_list(["a"]) == ["a"]
