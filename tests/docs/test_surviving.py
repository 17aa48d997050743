"""Recipes of docs/surviving.md: the command prints what is shown; Slurm's and Kubernetes' fit the code."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from ringlet.launcher.commands import run_command
from ringlet.train import preemption_handler
from tests.docs.test_launcher import pattern_of, run_shown

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "surviving.md").read_text(encoding="utf-8")
STATUS = preemption_handler._EXIT_STATUS


def block(language, beginning):
    """Return the block of a language that begins so."""
    found = rf"^```{language}\n({re.escape(beginning)}.*?)^```$"
    (text,) = re.findall(found, DOCUMENT, re.MULTILINE | re.DOTALL)
    return text


def options_of(words):
    """Return the parsed options of a `ringlet run` command line."""
    assert words[:2] == ["ringlet", "run"]
    parser = argparse.ArgumentParser()
    run_command.add_arguments(parser)
    return parser.parse_args(words[2:])


@pytest.mark.slow
def test_the_restarted_program_prints_what_is_shown(tmp_path):
    (tmp_path / "train.py").write_text(block("py", "# train.py"), encoding="utf-8")
    command, printed = re.fullmatch(r"\$ (ringlet .*?)\n(.*)", block("console", "$ ringlet"), re.DOTALL).groups()
    done = run_shown(command, tmp_path)
    assert re.fullmatch(pattern_of(printed), done.stdout), done.stdout
    assert done.returncode == 0


def test_the_command_lines_are_valid_and_the_status_is_the_codes():
    options = options_of(shlex.split(block("sh", "ringlet run")))
    assert (options.workers, options.restarts, options.grace_seconds) == ("4", "3", "60")
    options = options_of(shlex.split(re.search(r"`exec (ringlet run .*?)`", DOCUMENT)[1]))
    assert float(options.grace_seconds) < 120
    assert f"exits with status {STATUS}" in DOCUMENT.replace("\n", " ")
    assert f"which is {run_command._GRACE_SECONDS:g} s" in DOCUMENT


@pytest.mark.parametrize(("status", "is_requeued"), [(STATUS, True), (0, False), (1, False)])
def test_the_slurm_script_requeues_a_preempted_job_alone(tmp_path, status, is_requeued):
    script = block("sh", "#!/bin/bash\n#SBATCH")
    options = dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", script, re.MULTILINE))
    assert len(options) == script.count("#SBATCH")
    assert options["signal"] == "TERM@120"
    assert options["nodes"] == "1"
    for name, text in (("srun", f"exit {status}"), ("scontrol", f'echo "$@" > {tmp_path}/requeued')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "job.sh").write_text(script, encoding="utf-8")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "17"}
    done = subprocess.run(["bash", "-u", str(tmp_path / "job.sh")], env=environ, check=False, timeout=30)
    assert done.returncode == status
    assert (tmp_path / "requeued").exists() == is_requeued
    if is_requeued:
        assert (tmp_path / "requeued").read_text(encoding="utf-8") == "requeue 17\n"


def test_the_kubernetes_job_is_well_formed_and_its_numbers_fit():
    text = block("yaml", "apiVersion: batch/v1")
    depth = 0
    for line in text.splitlines():
        spaces, item, rest = re.fullmatch(r"( *)((?:- )?)(\w+:.*|\{.*\})", line).groups()
        assert len(spaces) % 2 == 0
        assert len(spaces) <= depth + 2, line
        depth = len(spaces) + len(item) if rest.endswith(":") or item else len(spaces)
    values = dict(re.findall(r"^ *(?:- )?(\w+): (.+)$", text, re.MULTILINE))
    command = [word.strip().strip('"') for word in values["command"].strip("[]").split(",")]
    assert float(options_of(command).grace_seconds) < float(values["terminationGracePeriodSeconds"])
    assert [int(code) for code in values["values"].strip("[]").split(",")] == [STATUS, 128 + 15]
    assert (values["kind"], values["operator"], values["restartPolicy"]) == ("Job", "In", "Never")
