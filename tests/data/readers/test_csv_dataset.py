"""Records of CSV files as tuples. What comes of each file is what TensorFlow 2.21 makes of it."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import CsvDataset, Dataset, TensorSpec
from ringlet.data.distribution.auto_shard import Sharding, auto_shard
from ringlet.errors import InvalidArgumentError, NotFoundError
from tests.data.state_cases import through_a_file

N, F, S = np.int32, np.float32, bytes


@pytest.fixture
def read(tmp_path):
    """Reads content: elements, and errors in their places."""

    def run(content, defaults, **options):
        path = tmp_path / "rows.csv"
        path.write_bytes(content.encode())
        iterator, found = iter(CsvDataset(path, defaults, **options)), []
        while True:
            try:
                found.append(next(iterator))
            except StopIteration:
                return found
            except InvalidArgumentError as error:
                found.append(str(error).replace(str(path), "F"))

    return run


# content, record_defaults, options, elements
CASES = [
    ("1,2.5,a\n3,4,b", [N, F, S], {}, [(1, 2.5, b"a"), (3, 4.0, b"b")]),
    ("1,,a\n,4,\n", [[7], [0.5], ["z"]], {}, [(1, 0.5, b"a"), (7, 4.0, b"z")]),
    ("1\n\n4\n", [[9]], {}, [(1,), (9,), (4,)]),
    (" 1 , 2.5 , a \n", [N, F, S], {}, [(1, 2.5, b" a ")]),
    ('"1","2.5","a,""b""\nc"\n', [N, F, S], {}, [(1, 2.5, b'a,"b"\nc')]),
    ('1,"a"\n', [N, S], {"use_quote_delim": False}, [(1, b'"a"')]),
    ("NA,1\n2,NA\n,\n", [[5], [6]], {"na_value": "NA"}, [(5, 1), (2, 6), (5, 6)]),
    ('"NA"\n""\n', [["d"]], {"na_value": "NA"}, [(b"d",), (b"d",)]),
    ("a,b\n1,2\n", [N, N], {"header": True}, [(1, 2)]),
    ("a,b\n", [N, N], {"header": True}, []),
    ("", [N], {}, []),
    ("1,2,3\n4,5,6\n", [N, N], {"select_cols": [0, 2]}, [(1, 3), (4, 6)]),
    ("1,2,3\n4,5,6\n", [N, N], {"exclude_cols": [1]}, [(1, 3), (4, 6)]),
    ("1,x\n", [N], {"select_cols": [0]}, [(1,)]),
    ("1\t2\n", [N, N], {"field_delim": "\t"}, [(1, 2)]),
    ("1e300,1\n", [F, F], {}, [(np.inf, 1.0)]),
    ("inf,1e3\n-inf,-0\n", [F, F], {}, [(np.inf, 1000.0), (-np.inf, 0.0)]),
    ("3000000000,-1\n", [np.int64, np.float64], {}, [(3000000000, -1.0)]),
]


@pytest.mark.parametrize(("content", "defaults", "options", "elements"), CASES)
def test_records_become_values(read, content, defaults, options, elements):
    assert read(content, defaults, **options) == elements


# content, record_defaults, options, elements and errors
WRONG = [
    ("1,\n2,4\n", [N, F], {}, ["line 1: Field 1 is required but missing", (2, 4.0)]),
    ("1,2\n\n4,5\n", [N, N], {}, [(1, 2), "line 2: Field 0 is required but missing", (4, 5)]),
    ("x\n2\n", [N], {}, ["line 1: Field 0 in record is not a valid int32: x", (2,)]),
    ("3000000000\n", [N], {}, ["line 1: Field 0 in record is not a valid int32: 3000000000"]),
    ("1.5\n0x10\n1_0\n", [N], {}, [f"line {i}: Field 0 in record is not a valid int32" for i in (1, 2, 3)]),
    ("1_0\n", [F], {}, ["line 1: Field 0 in record is not a valid float32: 1_0"]),
    ("1,2\n3\n4,5\n", [N, N], {}, [(1, 2), "line 2: Expect 2 fields but have 1 in record", (4, 5)]),
    ("1,2\n3,4,5\n", [N, N], {}, [(1, 2), "line 2: Expect 2 fields but have more in record"]),
    ("1,2,3\n4,5\n", [N, N], {"select_cols": [0, 2]}, [(1, 3), "line 2: Expect 2 fields but have 1 in record"]),
    ("1,2,3\n", [N], {"exclude_cols": [1]}, ["line 1: Expect 1 fields but have more in record"]),
    ('1,a"b\n2,c\n', [N, S], {}, ["line 1: Unquoted fields cannot have quotes inside", (2, b"c")]),
    ('1,"a\n2,c\n', [N, S], {}, ["line 1: Reached end of file without closing quoted field in record"]),
    ("", [N], {"header": True}, ["Can't read header of file F: it is empty"]),
    ('x,a"b\n1,2\n', [N, N], {"header": True}, ["Can't read header of file F: Unquoted fields"]),
]


@pytest.mark.parametrize(("content", "defaults", "options", "expected"), WRONG)
def test_errors_name_file_and_line_and_the_next_record_comes(read, content, defaults, options, expected):
    found = read(content, defaults, **options)
    assert len(found) == len(expected)
    for got, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, str):
            assert wanted in got
            assert "F" in got
        else:
            assert got == wanted


# record_defaults, options, message
REFUSED = [
    ([N], {"select_cols": [0, 1]}, "2 columns and 1 defaults"),
    ([N, N], {"select_cols": [2, 0]}, "select_cols should be strictly increasing"),
    ([N, N], {"select_cols": [1, 1]}, "select_cols should be strictly increasing"),
    ([N, N], {"select_cols": [-1, 1]}, "select_cols should be non-negative"),
    ([N, N], {"select_cols": [0, 2], "exclude_cols": [1]}, "one of them must be empty"),
    ([N], {"field_delim": "||"}, "field_delim should be only 1 char"),
    ([N], {"field_delim": '"'}, "field_delim should be only 1 char"),
    ([np.int16], {}, r"record_defaults\[0\] is .*int16.*, but the dtype of a column must be float32"),
    ([N, [True]], {}, r"record_defaults\[1\] is \[True\]"),
    ([[1, 2]], {}, "only be 1 default per field"),
    ([], {}, "at least one item, one for each column"),
    ([N], {"compression_type": "LZ"}, "Unsupported compression_type"),
]


@pytest.mark.parametrize(("defaults", "options", "message"), REFUSED)
def test_arguments_that_do_not_fit_are_refused_at_once(defaults, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        CsvDataset("rows.csv", defaults, **options)


def test_specs_follow_from_the_defaults_without_a_file():
    spec = CsvDataset("absent.csv", [N, [0.5], "", np.dtype(object)]).element_spec
    assert spec == (TensorSpec((), N), TensorSpec((), np.float64), TensorSpec((), object), TensorSpec((), object))
    assert CsvDataset("absent.csv", [N]).map(lambda x: x * 2.5).element_spec == TensorSpec((), np.float64)


def test_files_come_one_behind_another_and_an_absent_one_is_named(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text(f"{number}\n")
    names = [tmp_path / "1.csv", tmp_path / "absent.csv", tmp_path / "2.csv"]
    iterator = iter(CsvDataset(names, [N]))
    assert next(iterator) == (1,)
    with pytest.raises(NotFoundError, match=r"absent\.csv"):
        next(iterator)
    assert next(iterator) == (2,)
    assert list(CsvDataset(Dataset.from_tensor_slices([str(names[2])]), [N])) == [(2,)]


def test_compressed_files_are_read(tmp_path):
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"1\n2\n"))
    assert list(CsvDataset(tmp_path / "f.gz", [N], "GZIP", 2)) == [(1,), (2,)]


def test_it_goes_on_from_a_state(tmp_path):
    (tmp_path / "f").write_text("".join(f"{i},{i / 2}\n" for i in range(5000)))
    dataset = CsvDataset(tmp_path / "f", [N, F], buffer_size=4096)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(3210):
        next(iterator)
    later.set_state(through_a_file(iterator.get_state()))
    assert list(later) == list(iterator)


def test_workers_are_dealt_files(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}").write_text(f"{number}\n")
    dataset = CsvDataset([tmp_path / "0", tmp_path / "1"], [N]).batch(2)
    sharded = auto_shard(dataset.node, Sharding(2, 1, 2, fills_all=False))
    assert sharded.policy.name == "FILE"
    assert [x.tolist() for (x,) in Dataset(sharded.node)] == [[1]]


def test_tensors_have_tensorflow_s_dtypes(tmp_path):
    (tmp_path / "f").write_text("1,2,a,4\n")
    dataset = tf.data.experimental.CsvDataset(str(tmp_path / "f"), [tf.int64, [0.5], tf.string, tf.constant([1])])
    (row,) = dataset
    assert [x.dtype for x in row] == [tf.int64, tf.float32, tf.string, tf.int32]
    assert dataset.element_spec[1] == tf.TensorSpec((), tf.float32)
