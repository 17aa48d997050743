"""Lists as Slurm writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.cluster.resolvers.slurm_resolver import expand_hostlist, expand_tasks_per_node

names = st.text("abcxyz-", min_size=1, max_size=4)


@given(names, st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_a_range_is_every_number_in_it_with_as_many_digits_as_the_first(prefix, ranges):
    text = ",".join(f"{first:0{width}}-{first + more}" for first, more, width in ranges)
    hosts = [
        f"{prefix}{str(number).zfill(max(width, len(str(first))))}"
        for first, more, width in ranges
        for number in range(first, first + more + 1)
    ]
    assert expand_hostlist(f"{prefix}[{text}]") == hosts


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 9)), min_size=1, max_size=5))
def test_a_number_with_repetitions_is_that_number_as_often(items):
    assert expand_tasks_per_node(",".join(f"{count}(x{times})" for count, times in items)) == [
        count for count, times in items for _ in range(times)
    ]


@pytest.mark.parametrize(
    ("hostlist", "hosts"),
    [
        # list, hosts
        ("", []),
        ("n1,n2", ["n1", "n2"]),
        ("n1,", ["n1"]),
        ("n[1-2],m5,o[3-4,6,7-9]", ["n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"]),
        ("gpu[9-11],cpu", ["gpu9", "gpu10", "gpu11", "cpu"]),
    ],
)
def test_hosts_keep_their_order(hostlist, hosts):
    assert expand_hostlist(hostlist) == hosts


@pytest.mark.parametrize(
    ("hostlist", "words"),
    [
        # list, words of the error
        ("n1,,n2", "a host is missing between two commas"),
        ("a[1,3]b", r"Invalid part: a\[1,3\]b"),
        ("n[1-2-3]", "'1-2-3' is not a range"),
        ("n[1-2][3-4]", "Invalid part"),
        ("n[1-", r"Invalid part: n\[1-"),
        ("n[x]", "invalid literal"),
        ("n[1,[2]]", "Invalid part"),
        ("n[1-99999999999]", "has 99999999999 hosts"),
    ],
)
def test_a_list_of_hosts_that_cannot_be_read_is_refused(hostlist, words):
    with pytest.raises(ValueError, match=rf"Invalid hostlist format.*{words}"):
        expand_hostlist(hostlist)


@pytest.mark.parametrize("text", ["", "a", "2(x)", "2(3)", "1(x2),", "2 (x2)", "1(x999999999)", "٣"])
def test_a_list_of_numbers_that_cannot_be_read_is_refused(text):
    with pytest.raises(ValueError, match="Invalid tasks-per-node list format"):
        expand_tasks_per_node(text)
