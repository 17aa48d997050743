"""Sizes and times as people read and write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.units import format_bytes, format_seconds, parse_bytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("4096", 4096),
        ("1B", 1),
        ("1KiB", 1024),
        ("1kb", 1000),
        (" 64 mib ", 64 * 2**20),
        ("1.5GB", 1_500_000_000),
        (".5KiB", 512),
        ("1e9", 10**9),
        ("2.e3 B", 2000),
        ("3TiB", 3 * 2**40),
        ("1PB", 10**15),
    ],
)
def test_a_size_is_a_number_and_a_unit(text, nbytes):
    assert parse_bytes(text) == nbytes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Write a number and a unit"),
        ("GiB", "Write a number and a unit"),
        ("-1GiB", "Write a number and a unit"),
        ("1,5GB", "Write a number and a unit"),
        ("1G", "Write 1GiB or 1GB"),
        ("2.5k", "Write 2.5KiB or 2.5kB"),
        ("1 parsec", "unknown unit 'parsec'"),
        ("0", "at least 1"),
        ("1.5B", "whole number of bytes"),
        ("1e400GB", "whole number of bytes"),
    ],
)
def test_what_is_no_size_is_said_with_the_cure(text, words):
    with pytest.raises(ValueError, match=words) as caught:
        parse_bytes(text)
    assert repr(text) in str(caught.value)


@given(nbytes=st.integers(1, 2**60))
def test_a_written_size_reads_back_within_its_digits(nbytes):
    assert parse_bytes_of(format_bytes(nbytes)) == pytest.approx(nbytes, rel=0.006)


def parse_bytes_of(text: str) -> float:
    """The size of a text that need not be a whole number of bytes."""
    number, unit = text.split()
    return float(number) * parse_bytes(f"1{unit}")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (2**20, "1 MiB"), (1056, "1.03 KiB"), (10**9, "954 MiB"), (2**70, "1.049e+06 PiB")],
)
def test_sizes_are_written_in_powers_of_1024(nbytes, text):
    assert format_bytes(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (1e-12, "0.001 ns"), (9.99999e-4, "1 ms"), (12.5, "12.5 s"), (float("inf"), "inf s")],
)
def test_times_are_written_in_the_unit_that_suits_them(seconds, text):
    assert format_seconds(seconds) == text
