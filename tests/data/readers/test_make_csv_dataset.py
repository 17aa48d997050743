"""Batches of columns by name. What comes of each file is what TensorFlow 2.21 makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import INFINITE_CARDINALITY, TensorSpec, make_csv_dataset
from ringlet.errors import InvalidArgumentError

ROWS = "x,y,n\n1,2.5,a\n2,3,b\n3,,c\n"


@pytest.fixture
def write(tmp_path):
    def run(content, name="rows.csv"):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return run


@pytest.fixture
def read(write):
    """Reads content once and in order: batches, with arrays as lists."""

    def run(content, batch_size=2, **options):
        dataset = make_csv_dataset(write(content), batch_size, **{"num_epochs": 1, "shuffle": False, **options})
        return [plain(batch) for batch in dataset]

    return run


def plain(batch):
    if isinstance(batch, tuple):
        return tuple(map(plain, batch))
    return {k: v.tolist() for k, v in batch.items()} if isinstance(batch, dict) else batch.tolist()


# content, options, batches
CASES = [
    (ROWS, {}, [{"x": [1, 2], "y": [2.5, 3.0], "n": [b"a", b"b"]}, {"x": [3], "y": [0.0], "n": [b"c"]}]),
    (ROWS, {"select_columns": ["n", "x"]}, [{"x": [1, 2], "n": [b"a", b"b"]}, {"x": [3], "n": [b"c"]}]),
    (ROWS, {"select_columns": [2, 0]}, [{"x": [1, 2], "n": [b"a", b"b"]}, {"x": [3], "n": [b"c"]}]),
    (ROWS, {"select_columns": ["x", "n"], "label_name": "n"}, [({"x": [1, 2]}, [b"a", b"b"]), ({"x": [3]}, [b"c"])]),
    ("1,2\n3,4\n", {"header": False, "column_names": ["a", "b"]}, [{"a": [1, 3], "b": [2, 4]}]),
    ("q\n1\n2\n", {"column_names": ["a"]}, [{"a": [1, 2]}]),
    ("a\nNA\n2\n", {"na_value": "NA"}, [{"a": [0, 2]}]),
    ("a\n1\n2\n3\n", {"num_epochs": 2}, [{"a": [1, 2]}, {"a": [3, 1]}, {"a": [2, 3]}]),
    ("a,b\n1,2\n3,x\n4,5\n", {"num_rows_for_inference": 1, "ignore_errors": True}, [{"a": [1, 4], "b": [2, 5]}]),
    ("a,b\n", {}, []),
    ('"a,1";b\n"x;y";2\n', {"field_delim": ";"}, [{"a,1": [b"x;y"], "b": [2]}]),
]


@pytest.mark.parametrize(("content", "options", "batches"), CASES)
def test_rows_become_batches_of_columns(read, content, options, batches):
    found = read(content, **options)
    assert found == batches
    assert [list(batch) for batch in found if isinstance(batch, dict)] == [list(b) for b in batches if type(b) is dict]


def test_dtypes_are_the_narrowest_that_hold_the_first_rows(write):
    path = write("a,b,c,d,e,f,g\n1,3000000000,1.5,1e300,x,,inf\n2,,2,1,,,1\n")
    spec = make_csv_dataset(path, 2, num_epochs=1).element_spec
    dtypes = [np.int32, np.int64, np.float32, np.float64, object, object, object]
    assert spec == {name: TensorSpec((None,), dtype) for name, dtype in zip("abcdefg", dtypes, strict=True)}


def test_defaults_say_which_fields_may_be_empty(read):
    with pytest.raises(InvalidArgumentError, match="line 4: Field 1 is required but missing"):
        read(ROWS, column_defaults=[np.int64, np.float32, bytes])
    assert read(ROWS, 3, column_defaults=[np.int64, [0.5], bytes])[0]["y"] == [2.5, 3.0, 0.5]


def test_without_a_number_of_epochs_it_never_ends_and_batches_are_full(write):
    dataset = make_csv_dataset(write("a\n1\n2\n3\n"), 2, shuffle_seed=1)
    assert dataset.element_spec == {"a": TensorSpec((2,), np.int32)}
    rows = np.concatenate([batch["a"] for batch in dataset.take(6)])
    assert np.bincount(rows).tolist() == [0, 4, 4, 4]
    assert rows.tolist() != [1, 2, 3] * 4
    assert list(make_csv_dataset(write("a\n"), 2)) == []


def test_files_come_in_the_order_of_their_names_or_take_turns(write, tmp_path):
    write("a\n3\n4\n", "2.csv")
    write("a\n1\n2\n", "1.csv")
    pattern = f"{tmp_path}/?.csv"
    assert plain(next(iter(make_csv_dataset(pattern, 4, shuffle=False)))) == {"a": [1, 2, 3, 4]}
    turns = make_csv_dataset([pattern], 4, shuffle=False, num_parallel_reads=2)
    assert plain(next(iter(turns))) == {"a": [1, 3, 2, 4]}


# content, options, message
REFUSED = [
    (ROWS, {"label_name": "q"}, r"label_name must be one of the columns \['x', 'y', 'n'\], got 'q'"),
    (ROWS, {"select_columns": ["q"]}, "select_columns has 'q'"),
    (ROWS, {"select_columns": [3]}, "select_columns has 3, which is not a column: .*positions from 0 to 2"),
    (ROWS, {"select_columns": ["x", 0]}, "must not contain duplicates"),
    (ROWS, {"column_defaults": [[0], [0.5]], "select_columns": ["x"]}, "2 defaults and 1 columns"),
    ("1,2\n", {"header": False}, "header=False requires column_names"),
    ("a,a\n1,2\n", {}, r"must be unique, got duplicates \['a'\]"),
    ("a,b\n1,2\n3\n", {}, r"rows\.csv, line 3, while inferring dtypes: 1 fields found, 2 columns expected"),
    ("", {}, r"rows\.csv is empty, so it has no header line"),
    (ROWS, {"compression_type": "LZ"}, "Unsupported compression_type"),
    (ROWS, {"field_delim": ",,"}, "field_delim should be only 1 char"),
]


@pytest.mark.parametrize(("content", "options", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_at_once(read, content, options, message):
    with pytest.raises(ValueError, match=message):
        read(content, **options)


def test_files_must_be_there_and_have_one_header(write, tmp_path):
    with pytest.raises(ValueError, match=r"No files match `file_pattern` .*none\*"):
        make_csv_dataset(f"{tmp_path}/none*", 2)
    with pytest.raises(ValueError, match="at least one file"):
        make_csv_dataset([], 2)
    with pytest.raises(ValueError, match=r"a\.csv has \['x'\], but .*b\.csv has \['y'\]"):
        make_csv_dataset([write("x\n1\n", "a.csv"), write("y\n1\n", "b.csv")], 2)


def test_a_header_in_another_encoding_is_named(tmp_path):
    (tmp_path / "f").write_bytes("zwölf\n1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="f, line 1: the header is not utf-8 text"):
        make_csv_dataset(tmp_path / "f", 1)
    assert list(make_csv_dataset(tmp_path / "f", 1, encoding="latin-1").element_spec) == ["zwölf"]


def test_it_is_known_to_be_endless(write):
    assert make_csv_dataset(write(ROWS), 2).cardinality() in (INFINITE_CARDINALITY,)


def test_tensors_have_tensorflow_s_dtypes(write):
    path = str(write(ROWS))
    dataset = tf.data.experimental.make_csv_dataset(path, 3, column_defaults=[tf.int64, [0.5], ""], shuffle=False)
    batch = next(iter(dataset))
    assert [batch[name].dtype for name in "xyn"] == [tf.int64, tf.float32, tf.string]
