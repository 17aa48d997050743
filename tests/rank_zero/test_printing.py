"""print0 prints once, what print prints."""

from __future__ import annotations

import io
import sys

import ringlet
from tests.rank_zero.test_process_role import config


def test_it_prints_what_print_prints(capsys):
    ringlet.print0("a", 1, None, sep="-", end="!\n")
    assert capsys.readouterr().out == "a-1-None!\n"


def test_others_than_the_chief_print_nothing(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", config("worker", 0))
    ringlet.print0("not here")
    assert capsys.readouterr().out == ""


def test_a_line_of_many_replicas_is_printed_once(capsys):
    ringlet.MirroredStrategy([f"CPU:{i}" for i in range(8)]).run(lambda: ringlet.print0("once"))
    assert capsys.readouterr().out == "once\n"


def test_it_writes_to_the_file_that_it_is_given_in_one_piece():
    class Pieces(io.StringIO):
        def __init__(self):
            super().__init__()
            self.pieces = []

        def write(self, text):
            self.pieces.append(text)
            return len(text)

    file = Pieces()
    ringlet.print0("a", "b", file=file, flush=True)
    assert [piece for piece in file.pieces if piece] == ["a b\n"]


def test_a_program_without_standard_output_prints_nowhere(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    ringlet.print0("nobody reads this")


def test_over_workers_it_prints_once(processes):
    script = """
import ringlet
strategy = ringlet.MultiWorkerMirroredStrategy()
ringlet.print0("before")
strategy.run(lambda: ringlet.print0("inside"))
strategy.extended._workers.barrier("end")
"""
    from tests.strategy.workers import environment

    started = [processes.start(script, environ=environment(i, 2, job_id=f"print0 {id(script)}")) for i in range(2)]
    assert [process.wait() for process in started] == [0, 0], [process.said() for process in started]
    lines = [[], []]
    for number, process in enumerate(started):
        while isinstance(line := process.lines.get(timeout=5), str):
            lines[number].append(line)
    assert lines == [["before\n", "inside\n"], []]
