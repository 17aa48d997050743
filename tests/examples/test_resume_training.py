"""A training that is stopped and goes on has the bits of one that was not."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples import resume_training


def test_a_training_in_two_runs_has_the_bits_of_one_in_one_run(tmp_path, capsys):
    resume_training.main([str(tmp_path / "two"), "--steps", "13"])
    two = resume_training.train(tmp_path / "two", 30)
    # The order of shuffling is the one of the first run: it was saved before the first step.
    assert int(two.step) == 30
    assert len(two.losses) == 30
    assert two.losses[-1] < two.losses[0]
    assert "resumed at step 13" in capsys.readouterr().out


def test_runs_that_start_from_one_checkpoint_end_alike_whether_they_are_stopped_or_not(tmp_path):
    resume_training.train(tmp_path / "a", 1)
    (tmp_path / "b").mkdir()
    for file in (tmp_path / "a").iterdir():
        (tmp_path / "b" / file.name).write_bytes(file.read_bytes())
    whole = resume_training.train(tmp_path / "a", 40)
    for steps in (7, 8, 25, 40):
        parts = resume_training.train(tmp_path / "b", steps)
    assert whole.losses == parts.losses
    assert float(whole.slope) == float(parts.slope)
    assert float(whole.offset) == float(parts.offset)


@pytest.mark.slow
def test_the_program_runs_as_it_says(tmp_path):
    script = Path(resume_training.__file__)
    command = [sys.executable, str(script), str(tmp_path / "runs"), "--steps", "5"]
    outputs = [subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout for _ in range(2)]
    assert outputs[0].startswith("started\nstep 5: y = ")
    assert outputs[1].startswith("resumed at step 5\nstep 5: y = ")


def test_its_help_shows_the_commands_in_lines_of_their_own(capsys):
    with pytest.raises(SystemExit):
        resume_training.main(["--help"])
    assert resume_training.__doc__ in capsys.readouterr().out
