"""``ringlet doctor``: its layout, its exit status, and the places where it runs."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys

import pytest

from ringlet.errors import DeadlineExceededError
from ringlet.launcher.command_line import main
from ringlet.launcher.commands import doctor_command
from ringlet.launcher.commands.doctor_command import as_text, self_test
from ringlet.launcher.commands.machine_checks import CHECKS, Facts, Line, run_check
from tests.processes.harness import PATIENCE_SECONDS

DOCTOR = [sys.executable, "-m", "ringlet", "doctor"]
LINES = {
    "cores": Line("ok", "2: affinity mask of 2", "By default a job here has 2 replicas.", value=2),
    "open_files": Line("note", "limit of 64", "Enough for a job of 16 processes.", "ulimit -n 4096", 64),
    "cluster": Line(
        "problem",
        "ClusterConfigError: a text that is longer than what fits in one line of a terminal, as errors are.",
        "A job fails with this error.",
        "Correct the setting that the error names.",
    ),
}
LAYOUT = """\
ok       cores          2: affinity mask of 2. By default a job here has 2 replicas.
note     open files     limit of 64. Enough for a job of 16 processes.
                        -> ulimit -n 4096
problem  cluster        ClusterConfigError: a text that is longer than what fits in one line of a terminal, as
                        errors are. A job fails with this error.
                        -> Correct the setting that the error names."""


def run(*arguments, command=DOCTOR, environ=None, **options):
    environ = {**os.environ, **(environ or {})}
    return subprocess.run(
        [*command, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        **options,
    )


def test_the_layout():
    assert as_text(LINES) == LAYOUT


@pytest.mark.parametrize(("value", "status"), [(Line("note", "a", "b"), 0), (Line("problem", "a", "b"), 1)])
def test_only_a_problem_gives_status_1_and_json_has_stable_keys(value, status, monkeypatch, capsys):
    monkeypatch.setattr(doctor_command, "CHECKS", {"one": lambda _: value, "two": lambda _: LINES["cores"]})
    monkeypatch.setattr(doctor_command, "self_test", lambda _: Line("ok", "a", "b", value=math.inf))
    assert main(["doctor"]) == status
    assert capsys.readouterr().out.splitlines()[0] == f"{value.status:<8} one            a. b"
    assert main(["doctor", "--json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == ("problem" if status else "ok")
    assert list(found["checks"]) == ["one", "two", "self_test"]
    assert found["checks"]["two"] == {
        "status": "ok",
        "found": "2: affinity mask of 2",
        "meaning": "By default a job here has 2 replicas.",
        "remedy": "",
        "value": 2,
    }
    assert found["checks"]["self_test"]["value"] is None


def test_every_check_and_the_self_test_in_a_container_without_a_terminal():
    done = run("--json", stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert list(found["checks"]) == [*CHECKS, "self_test"]
    assert found["checks"]["self_test"]["status"] == "ok"
    assert done.returncode == (found["status"] == "problem")


def test_garbage_in_variables_is_shown_with_its_remedy():
    done = run("--no-self-test", environ={"TF_CONFIG": "{bad", "RINGLET_JOB_ID": "\udcff", "RINGLET_SECRET": "x7"})
    assert done.returncode == 1
    assert done.stderr == ""
    assert "problem  cluster        ClusterConfigError" in done.stdout
    assert "For example: TF_CONFIG=" in " ".join(done.stdout.split())
    assert "RINGLET_JOB_ID=\\udcff RINGLET_SECRET=***" in done.stdout


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"RINGLET_CPU": "abacus"}, "RINGLET_CPU is 'abacus'"),
        ({"PYTHONPATH": "{folder}"}, "ImportError: optree is broken"),
    ],
)
def test_an_installation_that_does_not_load_is_one_problem(environ, words, tmp_path):
    (tmp_path / "optree.py").write_text("raise ImportError('optree is broken')")
    done = run("--json", environ={name: text.format(folder=tmp_path) for name, text in environ.items()})
    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 1
    assert [name for name, line in checks.items() if line["status"] == "problem"] == ["installation"]
    assert words in checks["installation"]["found"]
    # A check is left out only if what it needs does not load.
    assert (checks["memory"]["found"] == "not checked") is ("RINGLET_CPU" in environ)


def test_a_low_limit_of_open_files_stops_the_self_test_too():
    def lower():
        resource.setrlimit(resource.RLIMIT_NOFILE, (17, 17))

    done = run("--json", preexec_fn=lower)
    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 1
    assert checks["open_files"]["status"] == checks["self_test"]["status"] == "problem"


def test_a_limit_of_file_size_stops_shared_memory():
    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    checks = json.loads(run("--no-self-test", "--json", preexec_fn=lower).stdout)["checks"]
    assert checks["size_limits"]["status"] == "note"
    assert "ulimit" in checks["shared_memory"]["found"]


@pytest.mark.parametrize("shell", ['"$@" >&-', '"$@" | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}'])
def test_standard_output_that_is_closed(shell):
    done = run(command=["bash", "-c", shell, "bash", *DOCTOR, "--no-self-test"])
    assert (done.returncode, done.stderr) == (0, "")


def test_inside_of_a_job():
    done = run("run", "-n", "2", "-m", "ringlet", "doctor", "--json", command=DOCTOR[:-1])
    assert done.returncode == 0, done.stdout
    lines = [json.loads(line.partition("] ")[2])["checks"] for line in done.stdout.splitlines()]
    found = sorted(line["cluster"]["meaning"] for line in lines)
    assert found == [f"This process is worker {rank} of 2, from TF_CONFIG." for rank in range(2)]
    assert [line["self_test"]["status"] for line in lines] == ["ok", "ok"]


def test_a_self_test_that_takes_too_long_or_adds_wrongly_is_a_problem(monkeypatch):
    with pytest.raises(DeadlineExceededError):
        self_test(Facts({}), seconds=0.001)
    assert run_check("self_test", lambda facts: self_test(facts, 0.001), Facts({})).status == "problem"
    monkeypatch.setattr(doctor_command, "launch", lambda *_, **__: [3.0, 4.0])
    assert self_test(Facts({})).status == "problem"
