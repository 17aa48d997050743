"""A team answers, is bounded in time, says what its processes said, and leaves nobody behind."""

from __future__ import annotations

import sys

import pytest

from bench.training_team import TeamError, TrainingTeam

ECHO = """
import json, os, sys, time
for line in sys.stdin:
    question = json.loads(line)
    if "fail" in question:
        sys.exit("what went wrong")
    if "work" in question:
        end = time.process_time() + question["work"]
        while time.process_time() < end:
            pass
    if "sleep" in question:
        time.sleep(question["sleep"])
    print(json.dumps([os.environ["ME"], question]), flush=True)
"""


@pytest.fixture
def team(tmp_path, monkeypatch):
    (tmp_path / "echo_for_team.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TrainingTeam(["echo_for_team"], [{"ME": "a"}, {"ME": "b"}], answer_seconds=5) as started:
        yield started


def test_every_process_answers_in_its_own_environment(team):
    for number in range(3):
        assert team.ask({"n": number}) == [["a", {"n": number}], ["b", {"n": number}]]


def test_a_process_that_ends_is_an_error_with_what_it_said(team):
    with pytest.raises(TeamError, match=r"process 0 of echo_for_team ended with status 1(.|\n)*what went wrong"):
        team.ask({"fail": True})


def test_an_answer_that_does_not_come_is_an_error(team):
    team._seconds = 0.2
    with pytest.raises(TeamError, match=r"did not answer within 0\.2 s"):
        team.ask({"sleep": 1})


def test_it_tells_what_its_processes_have_used_together(team):
    team.ask({})
    before = team.cpu_seconds()
    team.ask({"work": 0.2})
    assert 0.35 < team.cpu_seconds() - before < 1.0


def test_its_processes_end_with_it(tmp_path, monkeypatch):
    (tmp_path / "echo_for_team.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with TrainingTeam(["echo_for_team"], [{"ME": "a"}]) as team:
        process = team._processes[0]
        assert process.args[0] == sys.executable
    assert process.returncode == 0
