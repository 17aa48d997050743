import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import environments
from bench.environments import ENVIRONMENTS, make, ready_version


class Runner:
    """Answers commands as if they had run: makes the interpreter of a venv, fails where it is told to."""

    def __init__(self, fails_at=None, says="", version="Some MPI v1.2\n"):
        self.commands = []
        self._fails_at, self._says, self._version = fails_at, says, version

    def __call__(self, command, seconds):
        self.commands.append(list(command))
        if self._fails_at is not None and self._fails_at in command:
            return subprocess.CompletedProcess(command, 1, "", self._says)
        if "venv" in command:
            python = Path(command[-1]) / "bin" / "python"
            python.parent.mkdir(parents=True)
            python.touch()
        return subprocess.CompletedProcess(command, 0, self._version if "-c" in command else "", "")

    @property
    def installed(self):
        return [command[command.index("--only-binary=:all:") + 1 :] for command in self.commands if "pip" in command]


def test_an_environment_is_made_installed_and_asked_for_its_version(tmp_path):
    run = Runner()
    outcome = make(ENVIRONMENTS["mpich"], tmp_path, run=run)
    assert (outcome.is_ready, outcome.said) == (True, "Some MPI v1.2")
    assert run.commands[0] == [sys.executable, "-m", "venv", str(tmp_path / "mpich")]
    assert run.installed == [["numpy", "mpi4py", "mpich"]]
    assert ready_version(tmp_path, "mpich") == "Some MPI v1.2"


def test_a_ready_one_is_left_alone(tmp_path):
    make(ENVIRONMENTS["gloo"], tmp_path, run=Runner())
    run = Runner()
    outcome = make(ENVIRONMENTS["gloo"], tmp_path, run=run)
    assert (outcome.is_ready, outcome.seconds, run.commands) == (True, 0.0, [])


def test_a_ready_one_is_made_anew_if_asked(tmp_path):
    make(ENVIRONMENTS["gloo"], tmp_path, run=Runner())
    (tmp_path / "gloo" / "old").touch()
    run = Runner()
    assert make(ENVIRONMENTS["gloo"], tmp_path, run=run, recreate=True).is_ready
    assert len(run.commands) == 3
    assert not (tmp_path / "gloo" / "old").exists()


@pytest.mark.parametrize("fails_at", ["venv", "pip", "-c"])
def test_a_half_made_one_is_not_taken_for_ready(tmp_path, fails_at):
    assert not make(ENVIRONMENTS["jax"], tmp_path, run=Runner(fails_at=fails_at)).is_ready
    assert ready_version(tmp_path, "jax") is None
    assert make(ENVIRONMENTS["jax"], tmp_path, run=Runner()).is_ready


def test_an_interrupted_one_is_not_taken_for_ready(tmp_path):
    def run(command, seconds):
        if "pip" in command:
            raise KeyboardInterrupt
        return Runner()(command, seconds)

    with pytest.raises(KeyboardInterrupt):
        make(ENVIRONMENTS["jax"], tmp_path, run=run)
    assert ready_version(tmp_path, "jax") is None


def test_one_of_other_packages_is_not_taken_for_ready(tmp_path):
    make(ENVIRONMENTS["jax"], tmp_path, run=Runner())
    (tmp_path / "jax" / "ready.json").write_text(json.dumps({"packages": ["numpy", "jax==0.1"], "version": "jax 0.1"}))
    assert ready_version(tmp_path, "jax") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_spoilt_marker_makes_none_ready(tmp_path, text):
    make(ENVIRONMENTS["jax"], tmp_path, run=Runner())
    (tmp_path / "jax" / "ready.json").write_text(text)
    assert ready_version(tmp_path, "jax") is None


def test_what_failed_says_the_last_lines_without_addresses(tmp_path):
    lines = [f"line {i}" for i in range(20)]
    says = "\n".join([*lines, "Looking in indexes: https://me:word@packages.invalid/simple",
                      "ERROR: nothing fits at https://me:word@packages.invalid/simple/jax"])  # fmt: skip
    said = make(ENVIRONMENTS["jax"], tmp_path, run=Runner(fails_at="pip", says=says)).said
    assert said.splitlines() == [*lines[-5:], "ERROR: nothing fits at (address)"]


def test_a_command_without_end_has_failed():
    finished = environments.run_command([sys.executable, "-c", "import time; time.sleep(60)"], 0.2)
    assert (finished.returncode, finished.stderr) == (124, "no end after 0 s")


def test_a_command_that_there_is_not_has_failed(tmp_path):
    finished = environments.run_command([str(tmp_path / "none")], 60.0)
    assert (finished.returncode, "none" in finished.stderr) == (127, True)


def test_no_environment_holds_two_kinds_of_mpi():
    kinds = {"openmpi", "mpich", "impi-rt"}
    assert all(len(kinds & set(environment.packages)) <= 1 for environment in ENVIRONMENTS.values())


@pytest.mark.parametrize(
    # names, what fails, exit status
    ("names", "fails_at", "status"),
    [
        ([], None, 0),
        (["openmpi", "numpy"], None, 0),
        (["tensorflow", "openmpi"], "tensorflow-cpu", 0),
        (["impi"], "impi-rt", 0),
        (["openmpi", "jax"], "jaxlib", 1),
        (["gloo"], "torch==2.13.0", 1),
        (["mpich"], "mpich", 1),
    ],
)
def test_only_a_required_one_that_failed_fails_the_command(tmp_path, capsys, names, fails_at, status):
    run = Runner(fails_at=fails_at, says="ERROR: no such package")
    assert environments.main([*names, "--into", str(tmp_path)], run=run) == status
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[2 : 2 + len(names)]] == names
    assert ("FAILED" in printed) == ("ERROR: no such package" in printed) == (fails_at is not None)


def test_an_unknown_name_is_refused_with_those_there_are(tmp_path, capsys):
    with pytest.raises(SystemExit):
        environments.main(["openmp", "--into", str(tmp_path)], run=Runner())
    assert "there is no environment openmp: choose from openmpi, mpich" in capsys.readouterr().err
