"""The only element."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset
from ringlet.errors import InvalidArgumentError


def test_the_only_element_is_given():
    assert Dataset.from_tensors((1, "a")).get_single_element() == (1, "a")


@pytest.mark.parametrize(("count", "words"), [(0, "no element"), (2, "more than one")])
def test_there_must_be_one(count, words):
    with pytest.raises(InvalidArgumentError, match=words):
        Dataset.range(count).get_single_element()
