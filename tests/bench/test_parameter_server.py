"""What pushes, pulls and functions on workers cost: answers are checked, and peers are asked the same."""

import importlib
import json
from pathlib import Path

import pytest

from bench import parameter_server, parameter_server_peers
from bench.environments import ENVIRONMENTS
from bench.parameter_server_peers import PEERS, ParameterServerPeers, title_of
from bench.peer_process import PeerFailure
from tests.bench.stand_ins import make_environment

pytestmark = pytest.mark.slow

SCRIPTS = Path(parameter_server_peers.__file__).parent / "peers"
QUESTIONS = ("push and pull 4 MiB", "1,000 empty closures", "sparse update of 1,000 rows")

# Stands in for everybody: variables of this process, after a pause that the test chooses.
PEER = f"""
import sys, time
sys.path.insert(0, {str(SCRIPTS)!r})
from peer import begin, serve
from server_peer import ServerPeer, Variables

class StandIn(ServerPeer):
    version = "a stand-in"
    _variables = Variables()
    _update_rows, _pull_rows = _variables.update_rows, _variables.pull_rows
    def _run_closures(self, count): return [ANSWER] * count
    def _push_and_pull(self, gradient):
        time.sleep(PAUSE)
        return self._variables.push_and_pull(gradient).copy()

serve(StandIn(), begin())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Gives a function that makes stand-ins of everybody, and of environments; they may answer wrongly."""
    monkeypatch.setattr(parameter_server_peers, "_SCRIPTS", tmp_path)
    for environment, _ in PEERS.values():
        make_environment(tmp_path, environment, ENVIRONMENTS[environment].packages)

    def make(answer=None):
        (tmp_path / "ringlet_server.py").write_text(PEER.replace("PAUSE", "0").replace("ANSWER", "None"))
        for _, script in PEERS.values():
            (tmp_path / script).write_text(PEER.replace("PAUSE", "0.01").replace("ANSWER", repr(answer)))
        return tmp_path

    return make


def test_the_command_measures_all_peers_beside_ringlet_and_writes_everything(folder, tmp_path, capsys):
    path = tmp_path / "parameter_server.json"
    arguments = ["--rounds", "2", "--milliseconds", "0.2", "--json", str(path), "--environments", str(folder())]
    assert parameter_server.main(arguments) == 0
    assert "\n33 " in capsys.readouterr().out
    written = json.loads(path.read_text(encoding="utf-8"))
    who = ("ringlet", *PEERS)
    assert set(written["seconds"]) == {title_of(question, name) for question in QUESTIONS for name in who}
    assert {len(seconds) for seconds in written["seconds"].values()} == {2}
    assert [goal["number"] for goal in written["goals"]] == ["30", "31", "32", *["33"] * 9]
    assert min(written["seconds"]["Ray: push and pull 4 MiB"]) >= 0.01


def test_a_peer_with_a_wrong_answer_ends_the_measurement(folder):
    with pytest.raises(PeerFailure, match=r"closures gave .*seven"):
        parameter_server.main(["--rounds", "1", "--milliseconds", "0.2", "--environments", str(folder("seven"))])


def test_a_folder_without_a_peer_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m bench\.environments ray --into"):
        parameter_server.main(["--environments", str(tmp_path)])


def test_an_unknown_peer_is_refused(capsys):
    with pytest.raises(SystemExit):
        parameter_server.main(["--peers", "ray,horovod"])
    assert "there is no peer horovod: choose from Ray, Dask, TensorFlow" in capsys.readouterr().err


def test_ringlet_answers_everything_rightly():
    with ParameterServerPeers(None) as peers:
        subjects = peers.subjects(0.001)
        assert list(subjects) == [title_of(question, "ringlet") for question in QUESTIONS]
        assert all(0 < measure() < 10 for measure in subjects.values())
        assert peers.cpu_seconds() > 0


def goal_of(number, what, **seconds):
    answers = {title_of(question, "ringlet"): [seconds.get("ringlet", 1e-4)] * 2 for question in QUESTIONS}
    answers |= {title_of(question, "Ray"): [seconds.get("ray", 1e-3)] * 2 for question in QUESTIONS}
    [goal] = [
        each
        for goals in parameter_server._goals(answers)
        for each in goals
        if (each.number, each.what) == (number, what)
    ]
    return goal


@pytest.mark.parametrize(
    ("number", "what", "seconds", "verdict"),
    [
        # goal, what, times, verdict
        ("30", QUESTIONS[0], {"ringlet": 1.9e-3}, "met"),
        ("30", QUESTIONS[0], {"ringlet": 2.1e-3}, "MISSED"),
        ("31", QUESTIONS[1], {"ringlet": 0.09}, "met"),
        ("31", QUESTIONS[1], {"ringlet": 0.11}, "MISSED"),
        ("32", QUESTIONS[2], {"ringlet": 1.9e-4}, "met"),
        ("32", QUESTIONS[2], {"ringlet": 2.1e-4}, "MISSED"),
        ("33", f"Ray / ringlet, {QUESTIONS[2]}", {"ray": 1.1e-3}, "met"),
        ("33", f"Ray / ringlet, {QUESTIONS[2]}", {"ray": 0.9e-3}, "MISSED"),
    ],
)
def test_goals_hold_every_time_against_its_limit(number, what, seconds, verdict):
    assert goal_of(number, what, **seconds).verdict == verdict


def test_a_question_is_checked_on_variables_that_are_zeros_again(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    server_peer = importlib.import_module("server_peer")
    variables = server_peer.Variables()

    class Here(server_peer.ServerPeer):
        _update_rows, _pull_rows = variables.update_rows, variables.pull_rows

        def _push_and_pull(self, gradient):
            return variables.push_and_pull(gradient).copy()

        def _run_closures(self, count):
            return [None] * (count - 1)

    peer = Here()
    for question in (QUESTIONS[0], QUESTIONS[2]):
        for _ in range(2):
            peer.fill()
            peer.result = peer.call(question, "plain")()
            assert peer.complaint(question, "plain") is None
        peer.result = peer.call(question, "plain")()
        assert "left" in peer.complaint(question, "plain")
    peer.result = peer.call(QUESTIONS[1], "plain")()
    assert "999 in all; expected None" in peer.complaint(QUESTIONS[1], "plain")
