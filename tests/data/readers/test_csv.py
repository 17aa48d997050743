from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.errors import InvalidArgumentError, NotFoundError
from tests.data.readers.files import assert_restores, outcome, put

pytest.importorskip("pyarrow")


@pytest.fixture
def name(tmp_path):
    return put(tmp_path / "a.csv", b"x,y,n\n" + b"".join(b"%d,%d.5,row %d\n" % (i, i, i) for i in range(1000)))


def test_rows_are_dictionaries_whose_types_follow_from_the_file(name):
    rows = list(Dataset.from_csv([name, name]))
    assert rows[1002] == {"x": 2, "y": 2.5, "n": "row 2"}
    assert {key: type(value) for key, value in rows[0].items()} == {"x": np.int64, "y": np.float64, "n": str}
    assert len(rows) == 2000


def test_columns_and_types_may_be_chosen(name):
    batch = next(iter(Dataset.from_csv(name, ["n", "x"], column_types={"x": np.float32, "n": bytes}).batch(3)))
    assert batch["x"].dtype == np.float32
    assert batch["n"].tolist() == [b"row 0", b"row 1", b"row 2"]
    assert batch.keys() == {"n", "x"}


def test_names_and_delimiters_may_be_given(tmp_path):
    name = put(tmp_path / "b.csv", b"1;2\n3;4\n")
    assert list(Dataset.from_csv(name, header=["a", "b"], delimiter=";")) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_a_state_is_restored_exactly(name):
    assert_restores(lambda: Dataset.from_csv([name, name]), [0, 1, 999, 1000, 1500, 2000])
    assert_restores(lambda: Dataset.from_csv([name, name], num_parallel_reads=2).batch(64), [0, 1, 20])


def test_files_without_rows_have_no_elements(tmp_path, name):
    empty, header = put(tmp_path / "e.csv", b""), put(tmp_path / "h.csv", b"x,y,n\n")
    assert len(list(Dataset.from_csv([empty, header, name]))) == 1000
    assert Dataset.from_csv(header).element_spec.keys() == {"x", "y", "n"}


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        # file, arguments, words of the error
        (b"x,y\n1,2\n3\n", {}, "Expected 2 columns, got 1"),
        (b"x,y\n1,\n", {}, "column 'y' of .* has the type null|no value in row 0"),
        (b"x,y\n1,2\n", {"columns": "z"}, "'z' in include_columns does not exist"),
        (
            b"x,y\n1,a\n",
            {"column_types": {"y": int}},
            r"invalid value 'a'. Pass the type of the column, as in column_types=",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_the_file_and_the_next_file_follows(tmp_path, text, settings, words):
    bad, good = put(tmp_path / "bad.csv", text), put(tmp_path / "good.csv", b"x,y,z\n7,8,9\n")
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        list(Dataset.from_csv(bad, **settings))
    assert "bad.csv" in str(caught.value)
    assert outcome(Dataset.from_csv([bad, good], **settings))[-2] == "InvalidArgumentError"


def test_missing_values_are_filled(tmp_path):
    name = put(tmp_path / "m.csv", b"x,y\n1,\n,4\n")
    assert list(Dataset.from_csv(name, fill_null=0)) == [{"x": 1, "y": 0}, {"x": 0, "y": 4}]


def test_a_type_or_a_file_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"column_types\['x'\] must be a dtype, str or bytes, got 'zork'"):
        Dataset.from_csv("x", column_types={"x": "zork"})
    with pytest.raises(NotFoundError):
        list(Dataset.from_csv("nowhere"))
