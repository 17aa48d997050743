import subprocess
import sys

import numpy as np
import pytest

import ringlet
from examples import digits
from tests.strategy.workers import environment

pytestmark = pytest.mark.slow

TINY = digits.Settings(hidden=5, dtype="float64")


def tiny_problem(images=7):
    rng = np.random.default_rng(0)
    return digits.initial_weights(TINY), rng.standard_normal((images, 64)), rng.integers(0, 10, images)


# --- model and data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["w1", "b1", "w2", "b2"])
def test_gradients_are_the_slopes_of_the_loss(name):
    weights, images, labels = tiny_problem()
    direction = np.random.default_rng(1).standard_normal(weights[name].shape)
    step = 1e-6

    def loss(distance):
        moved = {**weights, name: weights[name] + distance * direction}
        return digits.loss_and_gradients(moved, images, labels)[0]

    slope = (loss(step) - loss(-step)) / (2 * step)
    gradients = digits.loss_and_gradients(weights, images, labels)[1]
    np.testing.assert_allclose((gradients[name] * direction).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize("sizes", [(4, 3), (3, 3, 1), (7, 0)])
def test_losses_and_gradients_of_uneven_slices_add_up_to_those_of_the_batch(sizes):
    weights, images, labels = tiny_problem()
    cuts = np.cumsum(sizes)[:-1]
    slices = zip(np.split(images, cuts), np.split(labels, cuts), strict=True)
    losses, gradients = zip(*(digits.loss_and_gradients(weights, x, y) for x, y in slices), strict=True)
    whole_loss, whole = digits.loss_and_gradients(weights, images, labels)
    np.testing.assert_allclose(sum(losses), whole_loss)
    for name, expected in whole.items():
        np.testing.assert_allclose(sum(g[name] for g in gradients), expected, atol=1e-12)


def test_the_last_fifth_of_the_permutation_is_for_testing_and_the_rest_for_training():
    (images, labels), (test_images, test_labels) = digits.load_data(digits.Settings(seed=3))
    assert (len(images), len(test_images)) == (1437, 360)
    everything = digits.load_digits()
    order = np.random.default_rng(3).permutation(1797)
    np.testing.assert_array_equal(np.concatenate([labels, test_labels]), everything.target[order])
    np.testing.assert_array_equal(np.concatenate([images, test_images]) * 16, everything.data[order])


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [2, 3])
def test_small_training_learns_more_than_95_percent_of_unseen_digits(replicas):
    settings = digits.Settings(epochs=20, **digits.SMALL)
    _, history = digits.train(settings, replicas, "training")
    assert history[-1].accuracy > 0.95
    assert history[-1].loss < history[0].loss / 10
    assert all(0 < epoch.communication_share < 1 for epoch in history)


@pytest.mark.parametrize("replicas", ["1", "2", "3", "8"])
def test_any_number_of_replicas_ends_with_the_weights_of_one(replicas, capsys):
    assert digits.main(["--check", "--small", "--replicas", replicas]) == 0
    assert "passed" in capsys.readouterr().out


def test_the_check_fails_when_weights_differ_by_more_than_the_limit(monkeypatch, capsys):
    monkeypatch.setattr(digits, "CHECK_LIMIT", -1.0)
    assert digits.main(["--check", "--small", "--replicas", "2"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_the_script_reports_accuracy_and_speed_and_saves_a_figure(tmp_path):
    figure = tmp_path / "new" / "curve.png"
    command = [sys.executable, digits.__file__, "--small", "--epochs", "2", "--replicas", "2", "--out", str(figure)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("epoch   2  loss", "accuracy", "images/s", "communication", "speed-up"):
        assert words in done.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("many", "one", "explained"),
    [(0.004, 0.002, True), (0.002, 0.004, False), (0.04, 0.02, False)],
    ids=["short and slower", "short and faster", "long and slower"],
)
def test_a_step_too_short_for_threads_is_explained(many, one, explained, monkeypatch, capsys):
    monkeypatch.setattr(digits, "compare_with_one_replica", lambda settings, replicas: (many, one, one))
    digits.report_speed(digits.Settings(), 2)
    assert ("Threads cannot help here" in capsys.readouterr().out) == explained


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # what is given, what is said
        (["--replicas", "0"], "expected a whole number of at least 1, got '0'"),
        (["--epochs=-1"], "expected a whole number of at least 1, got '-1'"),
        (["--replicas", "two"], "expected a whole number of at least 1, got 'two'"),
        (["--seed=-1"], "expected a whole number of at least 0, got '-1'"),
        (["--seed", "-1"], "argument --seed: "),
        (["--replicas", "5000"], "expected at most 448, the images of a batch, got 5000"),
        (["--small", "--replicas", "33"], "expected at most 32, the images of a batch, got 33"),
        (["--out", "x.foo"], "cannot draw a .foo file; one of "),
        (["--out", "."], "'.' is a folder"),
        (["--out", f"{digits.__file__}/a.png"], f"cannot write into {digits.__file__}"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_before_training_with_what_was_given(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        digits.main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("out", "written"), [("curve", "curve.png"), ("curve.", "curve.png"), ("a.b.PDF", "a.b.PDF")])
def test_the_last_line_names_the_file_that_is_written(out, written, tmp_path, capsys):
    digits.main(["--small", "--epochs", "1", "--replicas", "1", "--out", str(tmp_path / out)])
    printed = capsys.readouterr().out
    assert printed.endswith(f"training curve: {tmp_path / written}\n")
    assert [path.name for path in tmp_path.iterdir()] == [written]


def test_one_replica_is_no_replicas():
    assert [digits.counted(n) for n in (1, 2)] == ["1 replica", "2 replicas"]


# --- several processes ------------------------------------------------------------------------------------------------

# The processes are forked, so that the libraries are imported once. Each trains as the script does under TF_CONFIG.
PROCESSES = """
from examples import digits
from tests.processes.forked import Job
from tests.strategy.workers import environment

settings = digits.Settings(epochs=2, **digits.SMALL)

def fingerprints(workers, replicas):
    def body(index, tell):
        os.environ.update(environment(index, workers, replicas, f"digits {os.getppid()}"))
        with open(os.devnull, "w") as nowhere:
            digits.console.file = nowhere
            trainer, history = digits.train(settings, None, "training")
        tell([digits.fingerprint(trainer.weights), history[-1].accuracy])

    job = Job(workers, body)
    told = [job.told(index, time.monotonic() + 60) for index in range(workers)]
    assert job.wait(60) == [0] * workers
    return told

for shape in ((1, 4), (2, 2), (4, 1)):
    tell(fingerprints(*shape))
"""


def test_four_replicas_learn_the_same_bits_as_threads_as_processes_and_as_both(processes):
    driver = processes.start(PROCESSES, environ={"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})
    threads, both, workers = driver.told(), driver.told(), driver.told()
    assert (len(threads), len(both), len(workers)) == (1, 2, 4)
    assert both + workers == threads * 6
    assert threads[0][1] > 0.5


@pytest.mark.parametrize("is_chief", [True, False])
def test_of_several_processes_only_the_first_one_speaks_and_draws(is_chief, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TF_CONFIG", environment(0, 1)["TF_CONFIG"])
    monkeypatch.setattr(ringlet, "is_chief", lambda: is_chief)
    monkeypatch.setattr(digits.console, "quiet", False)
    assert digits.main(["--small", "--epochs", "1", "--out", str(tmp_path / "a.png")]) == 0
    assert ("fingerprint of the weights" in capsys.readouterr().out) == is_chief
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"] * is_chief


def test_the_number_of_replicas_of_several_processes_is_not_the_scripts(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(SystemExit):
        digits.main(["--replicas", "2"])
    assert "`ringlet run --replicas`" in capsys.readouterr().err
