"""What NumPy's functions cost on arrays in tiles: every answer is checked, and JAX is asked the same questions."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from bench import sharding, sharding_peer
from bench.peer_process import PeerFailure
from bench.peers.sharding_inputs import SPECS, inputs_of
from bench.reference import WrongAnswerError
from bench.sharding_peer import peer_title
from bench.sharding_programs import FUNCTIONS, PROGRAMS, small_questions
from bench.sharding_questions import Question, questions, title_of
from tests.bench.stand_ins import make_environment

PEERS = Path(sharding_peer.__file__).parent / "peers"

# Stands in for JAX: the same protocol, with answers and durations that the test chooses.
PEER = f"""
import sys, time
sys.path.insert(0, {str(PEERS)!r})
from peer import Peer, begin, serve

class Sharding(Peer):
    variants = {{"add": ("jit",)}}
    version = "a stand-in"
    def allocate(self, count, dtype): pass
    def fill(self): pass
    def clear(self): pass
    def call(self, collective, variant): return lambda: time.sleep(0.001)
    def complaint(self, collective, variant): return COMPLAINT

options = begin()
peer = Sharding()
peer.num_ranks = options.ranks
serve(peer, options)
"""


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Gives a function that makes a folder with what looks like JAX, and says what it complains about."""
    make_environment(tmp_path, "jax", ["numpy", "jax", "jaxlib"])
    script = tmp_path / "peer_sharding.py"
    monkeypatch.setattr(sharding_peer, "_SCRIPT", script)

    def complaining(complaint=None):
        script.write_text(PEER.replace("COMPLAINT", repr(complaint)), encoding="utf-8")
        return tmp_path

    return complaining


@pytest.mark.parametrize("name", SPECS)
def test_every_question_has_the_right_answer_and_a_time(name):
    asked = list(questions(name, 1 << 12))
    for question in asked:
        question.check()
        assert 0 < question.measure(0.0002) < 10, question.title
    assert title_of(name, 1 << 12, "tiled") in [question.title for question in asked]


@pytest.mark.parametrize("name", [*FUNCTIONS, *PROGRAMS])
def test_small_arrays_and_programs_have_the_right_answer(name):
    for question in small_questions(name):
        question.check()


def test_a_wrong_answer_is_refused():
    question = Question("add", lambda: np.ones(2), lambda: np.zeros(2), is_untiled=False)
    with pytest.raises(WrongAnswerError, match=r"add gave .*1\., 1\..*, expected .*0\., 0\."):
        question.check()


@pytest.mark.parametrize("size_bytes", [1 << 12, 1 << 14, 1 << 20])
@pytest.mark.parametrize("name", SPECS)
def test_the_first_operand_has_at_most_the_bytes_that_were_asked_for_and_half_of_them_at_least(name, size_bytes):
    assert size_bytes / 2 <= inputs_of(name, size_bytes)[0].nbytes <= size_bytes


def test_the_right_answer_to_a_convolution_is_what_ringlet_gives(monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    jax_sharding = importlib.import_module("jax_sharding")
    [tiled, _] = questions("conv", 1 << 14)
    images, kernel = inputs_of("conv", 1 << 14)
    np.testing.assert_array_equal(np.array(tiled.call())[-1], jax_sharding._convolved(images[-1], kernel))


def test_jax_is_asked_what_ringlet_is_asked(monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    assert set(importlib.import_module("jax_sharding").JaxSharding.variants) == set(SPECS) - {"exp"}


def answers(size_bytes, **seconds):
    """Seconds of everything of one size, in two rounds."""
    found = {}
    for name in SPECS:
        for variant in ("tiled", "untiled"):
            title = title_of(name, size_bytes, variant)
            found[title] = [seconds.get(f"{name}_{variant}", 1e-6)] * 2
        found[peer_title(title_of(name, size_bytes, "tiled"))] = [seconds.get(f"{name}_jax", 1e-6)] * 2
    return found


def goal_of(number, text, size_bytes, **seconds):
    absolute, relative = sharding._goals(answers(size_bytes, **seconds), [size_bytes])
    [goal] = [goal for goal in absolute + relative if goal.number == number and text in goal.what]
    return goal


@pytest.mark.parametrize(
    ("number", "text", "size_bytes", "seconds", "verdict"),
    [
        # goal, what, bytes, times, verdict
        ("26", "matmul", 64 << 20, {"matmul_untiled": 1.8e-6}, "met"),
        ("26", "matmul", 64 << 20, {"matmul_untiled": 1.6e-6}, "MISSED"),
        ("27", "add", 64 << 20, {"add_tiled": 1.05e-6}, "met"),
        ("27", "add", 64 << 20, {"add_tiled": 1.2e-6}, "MISSED"),
        ("28", "add", 1 << 14, {"add_tiled": 29e-6}, "met"),
        ("28", "add", 1 << 14, {"add_tiled": 31e-6}, "MISSED"),
        ("29", "conv", 64 << 20, {"conv_jax": 1.1e-6}, "met"),
        ("29", "conv", 64 << 20, {"conv_jax": 0.9e-6}, "MISSED"),
        ("29", "conv", 1 << 14, {"conv_jax": 3.1e-6}, "met"),
        ("29", "conv", 1 << 14, {"conv_jax": 2.9e-6}, "MISSED"),
    ],
)
def test_goals_hold_every_time_against_its_limit(number, text, size_bytes, seconds, verdict):
    assert goal_of(number, text, size_bytes, **seconds).verdict == verdict


def test_the_command_measures_jax_beside_ringlet_and_writes_everything(environment, tmp_path, capsys):
    path = tmp_path / "sharding.json"
    arguments = ["--bytes", "4KiB", "--rounds", "2", "--milliseconds", "0.2", "--json", str(path)]
    assert sharding.main([*arguments, "--environments", str(environment())]) == 0
    told = capsys.readouterr().out
    assert "JAX: add 4 KiB, tiled" in told
    assert "JAX / add 4 KiB, tiled" in told
    written = json.loads(path.read_text(encoding="utf-8"))
    assert {len(seconds) for seconds in written["seconds"].values()} == {2}
    assert {goal["number"] for goal in written["goals"]} == {"28", "29", "36", "37"}


def test_a_peer_with_a_wrong_answer_ends_the_measurement(environment):
    arguments = ["--bytes", "4KiB", "--rounds", "1", "--milliseconds", "0.2"]
    with pytest.raises(PeerFailure, match="gave seven"):
        sharding.main([*arguments, "--environments", str(environment("gave seven"))])


def test_a_folder_without_jax_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m bench\.environments jax --into"):
        sharding.main(["--environments", str(tmp_path)])
