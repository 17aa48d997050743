"""ClusterDef: the bytes of TensorFlow's message, read and written."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.cluster import ClusterDef, ClusterSpec, JobDef

indices = st.integers(-(2**31), 2**31 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=300)
jobs = st.builds(JobDef, texts, st.dictionaries(indices, texts, max_size=6))


@pytest.mark.parametrize(
    ("cluster", "data"),
    [
        # cluster, bytes that tensorflow 2.21's as_cluster_def().SerializeToString(deterministic=True) gives
        ({}, ""),
        ({"worker": ["a", "b"]}, "0a160a06776f726b65721205080112016212050800120161"),
        ({"worker": {1: "a", 3: "b", 2: "c"}}, "0a1d0a06776f726b6572120508031201621205080212016312050801120161"),
        ({"w": {300: "a", 5: "b", 2**31 - 1: "z"}}, "0a1d0a0177120908ffffffff0712017a120608ac0212016112050805120162"),
        ({"": ["x"]}, "0a0712050800120178"),
        ({"b": ["1"], "a": ["2"]}, "0a0a0a0161120508001201320a0a0a016212050800120131"),
    ],
)
def test_the_bytes_are_those_of_tensorflow(cluster, data):
    assert ClusterSpec(cluster).as_cluster_def().SerializeToString(deterministic=True).hex() == data
    assert ClusterSpec(ClusterDef.FromString(bytes.fromhex(data))) == ClusterSpec(cluster)


@given(st.lists(jobs, max_size=4))
def test_what_was_written_is_read_again(items):
    message = ClusterDef(tuple(items))
    assert ClusterDef.FromString(message.SerializeToString()) == message


def test_fields_that_it_does_not_know_are_passed_over():
    # Number 7 as a number, as 8 bytes, as a text and as 4 bytes.
    unknown = bytes.fromhex("3801" + "39" + "00" * 8 + "3a0161" + "3d" + "00" * 4)
    assert ClusterDef.FromString(unknown + bytes.fromhex("0a050a0161") + unknown[:2]) == ClusterDef((JobDef("a", {}),))


@given(st.binary(max_size=60))
def test_other_bytes_are_a_value_error_or_a_message(data):
    with contextlib.suppress(ValueError):
        assert isinstance(ClusterDef.FromString(data), ClusterDef)


@pytest.mark.parametrize("data", ["0a", "0a05", "0aff", "0b", "0801", "0a020803", "0a050a03ff"])
def test_bytes_that_end_too_early_or_mean_something_else_are_refused(data):
    with pytest.raises(ValueError, match="bytes are not a ClusterDef"):
        ClusterDef.FromString(bytes.fromhex(data))
