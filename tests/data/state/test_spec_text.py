"""Specs as values of JSON."""

from __future__ import annotations

import json
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

from ringlet.data import Dataset, NoneTensorSpec, Optional, TensorSpec
from ringlet.data.state.spec_text import spec_of_text, spec_text

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec((2, None), np.float32),
        TensorSpec(None, object),
        TensorSpec((), "U"),
        (TensorSpec((), np.int8), {"x": [TensorSpec((), bool)], 3: TensorSpec((1,), ">i8")}),
        Point(TensorSpec((), np.int64), ()),
        Dataset.range(4).window(2).element_spec,
        Dataset.range(4).window(2).batch(2).element_spec,
        Dataset.range(4).map(Optional.from_value).element_spec,
        (TensorSpec((), np.int64), NoneTensorSpec()),
    ],
)
def test_specs_come_back(spec):
    assert spec_of_text(json.loads(json.dumps(spec_text(spec)))) == spec


def test_named_tuples_keep_their_names():
    found = spec_of_text(spec_text(Point(TensorSpec((), np.int64), TensorSpec((), np.int8))))
    assert type(found).__name__ == "Point"
    assert found.y == TensorSpec((), np.int8)


def test_other_classes_are_not_written():
    assert spec_text((OrderedDict(x=TensorSpec((), np.int64)),)) is None


@pytest.mark.parametrize("text", [3, None, {}, {"code": []}, {"tensor": [[2]]}, {"tensor": [[2], "no dtype"]}, [[]]])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - also that of the unpacking
        spec_of_text(text)
