"""What a strategy costs: every answer is checked, and TensorFlow is asked the same questions where it is there."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from bench import strategy_peers, strategy_questions, strategy_run
from bench.busy_loops import busy_loops
from bench.peer_process import PeerFailure
from bench.reference import WrongAnswerError
from bench.strategy_peers import StrategyPeers, peer_goals, peer_rows, peer_title
from tests.bench.stand_ins import make_environment

pytestmark = pytest.mark.slow

PEERS = Path(strategy_peers.__file__).parent / "peers"

# Stands in for TensorFlow: the same protocol, with answers and durations that the test chooses.
PEER = f"""
import sys, time
sys.path.insert(0, {str(PEERS)!r})
from peer import Peer, begin, serve

class Strategy(Peer):
    variants = {{"run, no-op": ("eager", "function")}}
    version = "a stand-in"
    def allocate(self, count, dtype): pass
    def fill(self): pass
    def clear(self): pass
    def call(self, collective, variant): return lambda: time.sleep(0.001)
    def complaint(self, collective, variant): return COMPLAINT if variant == "function" else None

options = begin()
peer = Strategy()
peer.num_ranks = options.ranks
serve(peer, options)
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Gives a function that makes a folder with what looks like TensorFlow, and says what it complains about."""
    make_environment(tmp_path, "tensorflow", ["numpy", "tensorflow-cpu"])
    script = tmp_path / "peer_strategy.py"
    monkeypatch.setattr(strategy_peers, "_SCRIPT", script)

    def complaining(complaint=None):
        script.write_text(PEER.replace("COMPLAINT", repr(complaint)), encoding="utf-8")
        return tmp_path

    return complaining


@pytest.mark.parametrize("count", [2, 3])
def test_every_question_has_the_right_answer_and_a_time(count):
    for question in strategy_questions.questions([count]):
        question.check(question.call())
        assert 0 < question.measure(0.0002) < 10, question.title


def test_a_wrong_answer_is_refused():
    with pytest.raises(WrongAnswerError, match="reduce gave 2, expected 3"):
        strategy_questions._expect("reduce", 3)(2)


def test_tensorflow_is_asked_what_ringlet_is_asked(monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    tensorflow_strategy = importlib.import_module("tensorflow_strategy")
    ours = {question.name for question in strategy_questions.questions([2])}
    assert set(tensorflow_strategy.TensorFlowStrategy.variants) < ours


def answers(**seconds):
    """Seconds of everything that goals speak of, in two rounds."""
    names = [*strategy_run._IMPORTS, "GIL round P=2"]
    names += [question.title for question in strategy_questions.questions([2])]
    return {name: [seconds.get(name.split(" P=")[0], 1e-6)] * 2 for name in names}


def test_goals_hold_every_time_against_its_limit():
    goals = strategy_run._goals(answers(**{"reduce of a scalar": 6e-6, "all_reduce of 100 leaves": 140e-6}), [2])
    verdicts = {(goal.number, goal.what): goal.verdict for goal in goals}
    assert verdicts["17", "reduce of a scalar, P=2"] == "MISSED"
    assert verdicts["17", "all_reduce of 100 leaves, P=2"] == "met"
    assert peer_goals(answers()) == [], "TensorFlow was not measured"


def test_ratios_to_tensorflow_are_formed_inside_a_round():
    measured = {
        "run, no-op P=2": [1e-6, 2e-6, 4e-6],
        peer_title("eager", "run, no-op P=2"): [30e-6, 60e-6, 40e-6],
        peer_title("function", "run, no-op P=2"): [3e-6, 6e-6, 12e-6],
        "reduce of a scalar P=2": [1e-6] * 3,
    }
    (goal,) = peer_goals(measured)
    assert (goal.number, goal.reached, goal.verdict) == ("18", "30 x", "met")
    (line,) = peer_rows(measured).splitlines()[2:]
    assert line.split()[-4:] == ["30.0", "x", "3.0", "x"]
    assert peer_rows({"reduce of a scalar P=2": [1e-6]}) == ""


def test_a_peer_is_measured_for_each_number_of_replicas(environment):
    with StrategyPeers(environment(), [2, 3]) as peers:
        subjects = peers.subjects(0.01)
        assert set(subjects) == {
            f"TensorFlow, {variant}: run, no-op P={count}" for variant in ("eager", "function") for count in (2, 3)
        }
        assert all(0.001 <= subject() < 1 for subject in subjects.values())
        assert peers.cpu_seconds() > 0
        processes = list(peers._processes.values())
    assert [process._process.poll() is not None for process in processes] == [True, True]


def test_a_wrong_answer_of_a_peer_gives_no_time(environment):
    with StrategyPeers(environment("no-op gave 5"), [2]) as peers:
        subjects = peers.subjects(0.01)
        assert subjects[peer_title("eager", "run, no-op P=2")]() > 0
        with pytest.raises(PeerFailure, match="no-op gave 5"):
            subjects[peer_title("function", "run, no-op P=2")]()


def test_without_an_environment_of_tensorflow_the_command_is_given_that_makes_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m bench\.environments tensorflow --into .*leave"):
        StrategyPeers(tmp_path, [2])


def test_a_run_writes_every_figure_of_every_round(environment, tmp_path, capsys, monkeypatch):
    loops = []
    monkeypatch.setattr(strategy_run, "busy_loops", lambda count: loops.append(count) or busy_loops(count))
    path = tmp_path / "out.json"
    arguments = ["--replicas", "2", "--rounds", "2", "--milliseconds", "0.5", "--busy", "1", "--json", str(path)]
    assert strategy_run.main([*arguments, "--environments", str(environment())]) == 0
    said, written = capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))
    for name in ("reduce of a scalar P=2", "variable, assign in a replica P=2", "TensorFlow, eager: run, no-op P=2"):
        assert name in said
        assert len(written["seconds"][name]) == 2
    assert {goal["number"] for goal in written["goals"]} == {"11", "13", "14", "15", "17", "18"}
    assert np.isfinite(written["others"])
    assert loops == [written["busy"]] == [1]
    assert "busy loops beside the replicas: 1" in said
