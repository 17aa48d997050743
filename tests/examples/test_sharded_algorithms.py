"""Algorithms on divided arrays send what textbooks say, and gather nothing."""

from __future__ import annotations

import pytest

from examples import sharded_algorithms as example
from ringlet.sharding import explain, mode


@pytest.mark.parametrize(("devices", "size"), [(1, 8), (2, 8), (4, 16), (8, 16)])
def test_results_are_those_of_plain_arrays_and_bytes_those_of_textbooks(devices, size):
    found = example.run(devices, size)
    assert [name for name, *_ in found] == ["3-D FFT", "sort", "PCA", "Poisson", "k-means"]
    for name, sent, textbook, difference in found:
        assert difference < 1e-12, name
        if name == "sort":  # samples and the last step to equal tiles come on top
            assert textbook <= sent <= 1.5 * textbook
        else:
            assert sent == textbook, name


def test_plans_have_the_bytes_before_the_programs_run():
    for name, (program, given, textbook) in example.programs(4, 16).items():
        if name != "sort":  # its exchanges depend on the values
            assert explain(program, given).nbytes == textbook, name


def test_devices_with_memory_of_their_own_send_as_much():
    shared = example.run(4, 8)
    with mode("copy"):
        assert example.run(4, 8) == shared


def test_the_script_prints_a_line_for_each_algorithm(capsys):
    example.main(["--devices", "2", "--size", "8"])
    assert capsys.readouterr().out.count("B in textbooks, off by") == 5


def test_a_size_that_devices_do_not_share_evenly_is_refused(capsys):
    with pytest.raises(SystemExit):
        example.main(["--devices", "3", "--size", "8"])
    assert "--size is a multiple of --devices, got 8 and 3" in capsys.readouterr().err
