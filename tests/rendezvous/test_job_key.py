"""Where the processes of a job meet."""

from __future__ import annotations

import os

import pytest

from ringlet.rendezvous.job_key import Job


def test_the_address_is_abstract_and_names_the_user():
    assert Job("main", "", 2).address().startswith(f"\0ringlet-{os.geteuid()}-")
    assert Job("main", "", 2).address(7).startswith("\0ringlet-7-")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Job("a", "", 2), Job("b", "", 2)),
        (Job("a", "1", 2), Job("a", "2", 2)),
        (Job("ab", "", 2), Job("a", "b", 2)),
        (Job("", "a", 2), Job("a", "", 2)),
    ],
)
def test_names_and_ids_are_kept_apart(one, other):
    assert one.address() != other.address()


def test_the_size_is_no_part_of_the_address_so_that_a_mismatch_is_heard_of():
    assert Job("a", "", 2).address() == Job("a", "", 3).address()


def test_an_address_fits_whatever_the_name_holds():
    assert len(Job("näme \udcff " * 1000, "id", 2).address(2**32 - 1).encode()) <= 107
