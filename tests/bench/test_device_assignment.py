"""What modelling a slice costs: every answer is checked, and TensorFlow must give the same one."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from bench import device_assignment
from bench.device_assignment import Question, TensorFlow, parse_meshes, questions
from bench.peer_process import PeerFailure
from tests.bench.stand_ins import make_environment

PEERS = Path(device_assignment.__file__).parent / "peers"

# Stands in for TensorFlow: the questions of its script, answered by ringlet.
PEER = f"""
import sys, types
sys.path.insert(0, {str(PEERS)!r})
import ringlet
from peer import begin, serve
from tensorflow_topology import TensorFlowTopology

if WRONG:
    build = ringlet.tpu.DeviceAssignment.build
    ringlet.tpu.DeviceAssignment.build = lambda *a, **k: build(*a, **k, device_order_mode="MESH")
tpu = types.SimpleNamespace(experimental=ringlet.tpu)
serve(TensorFlowTopology(types.SimpleNamespace(tpu=tpu, __version__="a stand-in")), begin())
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Gives a function that makes a folder with what looks like TensorFlow, which may answer wrongly."""
    make_environment(tmp_path, "tensorflow", ["numpy", "tensorflow-cpu"])
    script = tmp_path / "peer_topology.py"
    monkeypatch.setattr(device_assignment, "_SCRIPT", script)

    def answering(*, wrong=False):
        script.write_text(PEER.replace("WRONG", repr(wrong)), encoding="utf-8")
        return tmp_path

    return answering


def test_every_question_has_an_answer_and_a_time():
    asked = list(questions([(2, 2, 1, 2)]))
    assert [question.title.split()[0] for question in asked] == ["topology", "parse"] + ["build", "look-up"] * 3
    for question in asked:
        assert len(question.digest) == 8
        assert 0 < question.measure(0.0002) < 10


@pytest.mark.parametrize("text", ["2x2x1", "2x2x1x1", "0x2x2x2", "axbxcxd", "16"])
def test_what_is_no_mesh_of_eight_cores_or_more_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a mesh of a multiple of 8 cores"):
        parse_meshes(text)


def test_goals_hold_times_and_ratios_against_their_limits():
    mesh = (16, 16, 16, 2)
    asked = [Question(f"{kind} 16x16x16x2 1x1x1x2", mesh, int, "") for kind in ("topology", "build", "look-up")]
    answers = {asked[0].title: [1.0], asked[1].title: [2e-3] * 2, asked[2].title: [1e-7] * 2}
    answers["TensorFlow: build 16x16x16x2 1x1x1x2"] = [0.2, 0.3]
    goals = list(device_assignment._goals(asked, answers, 0.0))
    assert [(goal.number, goal.verdict) for goal in goals] == [("12", "MISSED"), ("12", "met"), ("12", "met")]
    assert goals[1].reached == "125 x"


def test_small_slices_have_no_ratio_to_reach():
    question = Question("build 2x2x1x2 1x1x1x2", (2, 2, 1, 2), int, "")
    answers = {question.title: [1.0], f"TensorFlow: {question.title}": [1.0]}
    assert list(device_assignment._goals([question], answers, 0.0)) == []


def test_an_answer_other_than_tensorflow_s_gives_no_time(environment):
    # Megacore: a mesh order differs from the ring that ringlet answers with.
    (question,) = (q for q in questions([(4, 2, 1, 1)]) if q.title == "build 4x2x1x1 1x1x1x1")
    with TensorFlow(environment(wrong=True)) as peer:
        (subject,) = peer.subjects([question], 0.01).values()
        with pytest.raises(PeerFailure, match="and ringlet's answer has"):
            subject()


def test_without_an_environment_of_tensorflow_the_command_is_given_that_makes_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m bench\.environments tensorflow --into .*leave"):
        TensorFlow(tmp_path)


def test_a_run_writes_every_figure_of_every_round(environment, tmp_path, capsys):
    path = tmp_path / "out.json"
    arguments = ["--meshes", "2x2x1x2", "--rounds", "2", "--milliseconds", "0.5", "--json", str(path)]
    assert device_assignment.main([*arguments, "--environments", str(environment())]) == 0
    said, written = capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))
    for name in ("build 2x2x1x2 1x1x1x2", "topology 2x2x1x2", "look-up 2x2x1x2 2x2x1x2"):
        assert name in said
        assert len(written["seconds"][name]) == len(written["seconds"][f"TensorFlow: {name}"]) == 2
    assert {goal["number"] for goal in written["goals"]} == {"12"}
    assert np.isfinite(written["others"])
