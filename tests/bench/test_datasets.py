"""What datasets cost: every answer is checked, and peers are asked the same questions where they are there."""

import importlib
import json
from pathlib import Path

import pytest

from bench import dataset_memory, dataset_peers, dataset_questions, datasets
from bench.dataset_memory import MemoryUse
from bench.dataset_peers import DatasetPeers, peer_title
from bench.dataset_questions import RANGE, RECORDS, SHUFFLED, SMALL, numpy_title, split_title
from bench.environments import ENVIRONMENTS
from bench.peer_process import PeerFailure
from bench.reference import WrongAnswerError
from tests.bench.stand_ins import make_environment

pytestmark = pytest.mark.slow

PEERS = Path(dataset_peers.__file__).parent / "peers"
MEMORY = MemoryUse(1 << 30, 5 << 20, 10 << 20)

# Stands in for both: the real protocol and check over plain lists, with a mistake where the test asks for one.
PEER = f"""
import sys
sys.path.insert(0, {str(PEERS)!r})
from dataset_peer import DatasetPeer
from peer import begin, serve

class StandIn(DatasetPeer):
    variants = {{"range": ("distributed", "usual"), "TFRecord": ("one by one",)}}
    def steps(self, question, variant):
        if question == "TFRecord":
            return [[b"x"] * self.record_count]
        return [self.labels[: self.rows - MISSING]]
    def parts(self, question, variant, step):
        yield (step,)

options = begin()
serve(StandIn(options.ranks), options)
"""


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.tfrecord"
    dataset_questions.write_records(path, SMALL.records, SMALL.record_bytes)
    return path


@pytest.fixture
def environments(tmp_path, monkeypatch):
    """Gives a function that makes a folder with what looks like both environments; its peers leave out so many rows."""
    script = tmp_path / "stand_in.py"
    for environment, _ in dataset_peers.PEERS.values():
        make_environment(tmp_path, environment, ENVIRONMENTS[environment].packages)
    stand_ins = {peer: (environment, str(script)) for peer, (environment, _) in dataset_peers.PEERS.items()}
    monkeypatch.setattr(dataset_peers, "PEERS", stand_ins)

    def leaving_out(count=0):
        script.write_text(PEER.replace("MISSING", str(count)), encoding="utf-8")
        return tmp_path

    return leaving_out


@pytest.mark.parametrize("count", [1, 3])
def test_every_question_has_the_right_answer_and_a_time(records, count):
    for title, question in dataset_questions.questions(SMALL, [count], records).items():
        question.check(question.call())
        assert 0 < question.measure(0.0002) < 10, title


def test_a_wrong_answer_is_refused(records):
    for question in dataset_questions.questions(SMALL, [2], records).values():
        with pytest.raises(WrongAnswerError, match="No time is reported"):
            question.check(question.call() + 1)


def test_peers_are_asked_what_ringlet_is_asked(monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    for _, script in dataset_peers.PEERS.values():
        module = importlib.import_module(script.removesuffix(".py"))
        (peer,) = (value for name, value in vars(module).items() if name.endswith("Datasets"))
        assert set(peer.variants) <= {SHUFFLED, RANGE, RECORDS}


def answers(**seconds):
    """Seconds of everything that goals speak of, in two rounds."""
    titles = [f"{SHUFFLED} P=2", numpy_title(f"{SHUFFLED} P=2"), f"{RANGE} P=2", RECORDS]
    titles += map(split_title, SMALL.split_bytes)
    return {title: [seconds.get(title, 1e-6)] * 2 for title in titles}


def verdicts(measured, memory=MEMORY):
    absolute, relative = datasets._goals(measured, [2], SMALL, memory)
    return {goal.number: goal.verdict for goal in absolute + relative}


def test_goals_hold_every_figure_against_its_limit():
    assert verdicts(answers()) == {"14": "met", "19": "met", "22": "met", "23": "met"}
    slow = answers(**{f"{SHUFFLED} P=2": 2e-6, f"{RANGE} P=2": 6e-6, split_title(SMALL.split_bytes[-1]): 2e-6})
    much = MemoryUse(1 << 30, 5 << 20, 70 << 20)
    assert verdicts(slow, much) == {"14": "MISSED", "19": "MISSED", "22": "MISSED", "23": "MISSED"}


def test_peers_are_held_against_the_usual_way_of_each():
    measured = {
        **answers(),
        peer_title("tf.data", "distributed", f"{SHUFFLED} P=2"): [11e-6] * 2,
        peer_title("DataLoader", "indexed", f"{SHUFFLED} P=2"): [2e-6] * 2,
        peer_title("tf.data", "batches", RECORDS): [0.5e-6] * 2,
    }
    assert {number: verdict for number, verdict in verdicts(measured).items() if number in ("20", "21")} == {
        "20": "met",
        "21": "MISSED",
    }


def test_each_peer_is_measured_for_each_number_of_replicas_and_files_once(environments, records):
    asked = dataset_questions.questions(SMALL, [2, 3], records)
    with DatasetPeers(environments(), [2, 3], SMALL, records) as peers:
        subjects = peers.subjects(asked, 0.001)
        assert set(subjects) == {
            *(
                peer_title(peer, variant, f"range P={count}")
                for peer in ("tf.data", "DataLoader")
                for variant in ("distributed", "usual")
                for count in (2, 3)
            ),
            peer_title("tf.data", "one by one", RECORDS),
            peer_title("DataLoader", "one by one", RECORDS),
        }
        assert all(0 < subject() < 1 for subject in subjects.values())
        assert peers.cpu_seconds() > 0
        processes = list(peers._processes.values())
    assert all(process._process.poll() is not None for process in processes)


def test_a_peer_that_loses_rows_gives_no_time(environments, records):
    asked = dataset_questions.questions(SMALL, [2], records)
    with DatasetPeers(environments(3), [2], SMALL, records) as peers:
        subjects = peers.subjects(asked, 0.001)
        with pytest.raises(PeerFailure, match="not every element came once"):
            subjects[peer_title("tf.data", "distributed", "range P=2")]()


def test_without_environments_the_command_is_given_that_makes_them(tmp_path, records):
    with pytest.raises(FileNotFoundError, match=r"python -m bench\.environments (tensorflow|gloo) .*--into .*leave"):
        DatasetPeers(tmp_path / "none", [2], SMALL, records)


def test_memory_is_told_of_a_file_that_was_read_whole(tmp_path):
    use = dataset_memory.memory_over(tmp_path, 1 << 20)
    assert use.file_bytes == 1 << 20
    assert 0 <= use.grown_bytes < use.buffer_bytes + (64 << 20)
    assert list(tmp_path.iterdir()) == [], "the file is removed"


def test_a_run_writes_every_figure_of_every_round(environments, tmp_path, capsys):
    path = tmp_path / "out.json"
    arguments = ["--small", "--replicas", "2", "--rounds", "2", "--milliseconds", "0.5", "--json", str(path)]
    assert datasets.main([*arguments, "--environments", str(environments())]) == 0
    said, written = capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))
    for name in (f"{SHUFFLED} P=2", numpy_title(f"{SHUFFLED} P=2"), "tf.data, distributed: range P=2", RECORDS):
        assert name in said
        assert len(written["seconds"][name]) == 2
    assert {goal["number"] for goal in written["goals"]} == {"14", "19", "20", "21", "22", "23"}
    assert written["memory"]["grown_bytes"] >= 0
