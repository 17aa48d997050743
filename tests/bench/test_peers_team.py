import pytest

from bench.peer_process import PeerFailure
from bench.peer_team import PeerTeam

SMALL = {"question": "all_reduce", "variant": "out", "size_bytes": 8, "dtype": "float32"}
LARGE = {**SMALL, "size_bytes": 1024}


class FakeProcess:
    """A peer that gives the answers of a list: numbers, failures, or what is to be raised."""

    version = "fake 1"
    variants = {"all_reduce": ("out",)}  # noqa: RUF012
    idle_cpu_seconds = 0.5

    def __init__(self, log, name, answers):
        self._log, self._name, self._answers = log, name, answers
        log.append(f"{name} started")

    def wait_until_ready(self, seconds):
        if self._answers and self._answers[0] == "no start":
            raise PeerFailure("ended", "no library")

    def sample(self, question, seconds):
        answer = self._answers.pop(0)
        if isinstance(answer, float):
            return answer
        if isinstance(answer, str):
            raise PeerFailure(answer, "why")
        raise answer

    def cpu_seconds(self):
        return 2.0

    def ask_to_end(self):
        self._log.append(f"{self._name} told")

    def stop(self, *, seconds=5.0):
        self._log.append(f"{self._name} stopped")
        if self._answers and self._answers[0] == "interrupted":
            self._answers.clear()
            raise KeyboardInterrupt


def team_of(log, **answers):
    return PeerTeam({name: lambda name=name: FakeProcess(log, name, answers[name]) for name in answers}, 2)


def test_all_start_before_any_is_waited_for_and_all_are_stopped():
    log = []
    with team_of(log, a=[1.0], b=[2.0]) as team:
        assert log == ["a started", "b started"]
        assert (team.ask("a", SMALL), team.ask("b", SMALL)) == (1.0, 2.0)
        assert team.versions == {"a": "fake 1", "b": "fake 1"}
    assert log[2:4] == ["a told", "b told"]
    assert sorted(log[4:]) == ["a stopped", "b stopped"]
    assert team.failures == []


def test_a_peer_that_breaks_down_is_replaced_and_the_rest_goes_on():
    log = []
    with team_of(log, a=["timed out", 3.0], b=[2.0, 4.0]) as team:
        assert team.ask("a", SMALL) is None
        assert team.ask("b", SMALL) == 2.0
        assert log[2:] == ["a stopped"]
        assert team.ask("a", LARGE) == 3.0
    assert [(failure.peer, failure.reason) for failure in team.failures] == [("a", "timed out")]
    assert (team.reason("a", SMALL), team.reason("a", LARGE), team.reason("b", SMALL)) == ("timed out", "", "")


def test_what_it_broke_down_at_is_not_asked_again():
    log = []
    with team_of(log, a=["ended", 3.0]) as team:
        assert [team.ask("a", SMALL) for _ in range(3)] == [None] * 3
    assert len(team.failures) == 1
    assert log == ["a started", "a stopped"]


def test_a_wrong_answer_gives_no_time_but_ends_nobody():
    log = []
    with team_of(log, a=["wrong answer", 3.0]) as team:
        assert (team.ask("a", SMALL), team.ask("a", LARGE)) == (None, 3.0)
        assert log == ["a started"]
    assert team.reason("a", SMALL) == "wrong answer"


def test_one_that_breaks_down_for_the_third_time_is_given_up():
    log = []
    with team_of(log, a=["ended"] * 3 + [1.0]) as team:
        for size in range(5):
            assert team.ask("a", {**SMALL, "size_bytes": size}) is None
    assert [failure.reason for failure in team.failures] == ["ended"] * 3
    assert team.reason("a", {**SMALL, "size_bytes": 4}) == "given up"
    assert log.count("a started") == 3


def test_one_that_does_not_start_is_left_out():
    log = []
    with team_of(log, a=["no start"], b=[2.0]) as team:
        assert list(team.variants) == ["b"]
        assert (team.ask("a", SMALL), team.ask("b", SMALL)) == (None, 2.0)
    assert [(failure.what, failure.message) for failure in team.failures] == [("start", "no library")]
    assert log.count("a started") == 1


def test_an_interruption_stops_all():
    log = []
    with pytest.raises(KeyboardInterrupt), team_of(log, a=[KeyboardInterrupt()], b=[]) as team:
        team.ask("a", SMALL)
    assert sorted(log[-2:]) == ["a stopped", "b stopped"]


def test_an_interruption_while_starting_stops_what_was_started():
    log = []

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), PeerTeam({"a": lambda: FakeProcess(log, "a", []), "b": interrupted}, 2):
        raise AssertionError("it must not get here")
    assert log == ["a started", "a told", "a stopped"]


def test_an_interruption_while_stopping_stops_the_others_all_the_same():
    log = []
    with pytest.raises(KeyboardInterrupt), team_of(log, a=[1.0], b=["interrupted"]):
        pass
    assert {"a stopped", "b stopped"} <= set(log)


def test_time_between_questions_is_told_as_a_part_of_a_core():
    with team_of([], a=[]) as team:
        assert team.idle_share() > 0
        assert team.cpu_seconds() == 2.0
