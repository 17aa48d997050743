"""The command line of a job on several hosts, and what is shown of the output of mpiexec."""

from __future__ import annotations

import os
import sys

import pytest

from ringlet.launcher import run_on_hosts
from ringlet.launcher.command_line import CommandError, main
from ringlet.launcher.run_workers import Job
from ringlet.launcher.simulated_hosts import simulated_addresses, simulated_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [("a:4,b:4", {"a": 4, "b": 4}), ("a", {"a": 1}), ("198.51.100.1:2, b:1", {"198.51.100.1": 2, "b": 1})],
)
def test_hosts_have_numbers_of_workers(text, hosts):
    assert run_on_hosts.parsed_hosts(text) == hosts


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "such as node1:4"), ("a:0", "such as"), ("a:x", "such as"), (":2", "such as"), ("a:2,a:2", r"a twice.*a:4")],
)
def test_invalid_hosts_are_refused_with_an_example(text, words):
    with pytest.raises(CommandError, match=words):
        run_on_hosts.parsed_hosts(text)


@pytest.fixture
def mpiexec(tmp_path, monkeypatch):
    """The only mpiexec; the text that it prints as its version can be set."""
    program = tmp_path / "bin" / "mpiexec"
    program.parent.mkdir()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")

    def write(version):
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
        return program

    return write


def test_the_command_has_the_settings_that_failures_need(mpiexec):
    program = mpiexec("mpirun (Open MPI) 5.0.11")
    job = Job(["python", "train.py"], 6, replicas=2, hosts={"a": 4, "b": 2})
    environ = {"TF_CONFIG": "{}", "RINGLET_RANK": "1", "RINGLET_TIMEOUT_SECONDS": "9", "HOME": "/h"}
    command, environment = run_on_hosts.mpiexec_command(job, environ)
    words = " ".join(command)
    assert command[0] == str(program)
    assert words.endswith(" python train.py")
    for part in (
        "--with-ft ulfm",
        "--mca coll ^han",
        "--host a:4,b:2 -n 6",
        "--map-by slot",
        "-x RINGLET_TIMEOUT_SECONDS",
    ):
        assert part in words
    assert ("--allow-run-as-root" in words) == (os.geteuid() == 0)
    assert environment["RINGLET_NUM_DEVICES"] == "2"
    assert environment["HOME"] == "/h"
    assert not {"TF_CONFIG", "RINGLET_RANK"} & environment.keys()
    assert "-x OMPI_MCA_btl_tcp_flags" in words
    assert environment["OMPI_MCA_btl_tcp_flags"] == "send,inplace"
    _, environment = run_on_hosts.mpiexec_command(job, {"OMPI_MCA_btl_tcp_flags": "send,put"})
    assert environment["OMPI_MCA_btl_tcp_flags"] == "send,put"


def test_without_mpi_the_error_names_the_extra(mpiexec):
    with pytest.raises(CommandError, match=r"mpiexec is not installed: run pip install 'ringlet\[mpi\]'"):
        run_on_hosts.mpiexec_command(Job(["python"], 2, hosts={"a": 2}), {})


def test_another_mpi_is_refused_with_its_own_command(mpiexec):
    mpiexec("HYDRA build details:")
    with pytest.raises(CommandError, match=r"is HYDRA build details:: start the job with .*mpiexec -n 2 python"):
        run_on_hosts.mpiexec_command(Job(["python"], 2, hosts={"a": 2}), {})


def test_the_sum_of_the_hosts_is_the_number_of_workers(capsys):
    assert main(["run", "--hosts", "a:2,b:2", "-n", "3", __file__]) == 2
    assert "-n 3 differs from the number of workers in --hosts a:2,b:2: omit -n" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--all-tracebacks", "--log-dir=logs"])
def test_options_that_need_the_workers_of_this_machine_are_refused(option, capsys):
    assert main(["run", "--hosts", "a:2,b:2", option, __file__]) == 2
    name = option.partition("=")[0]
    assert f"{name} is available for workers of this machine only: omit {name} or --hosts" in capsys.readouterr().err


def test_lines_of_ranks_have_the_prefix_of_workers_and_noise_is_left_out():
    lines = (
        b"[1,0]<stdout>: begun\n"
        b"[prterun-a-12@1,11]<stderr>: Traceback\n"
        b"[a:12] plm:ssh: Warning: setpgid(13,13) failed in parent\n"
        b"[a:12] PRTE ERROR: Not found in file x.c at line 1\n"
        b"[1,0]<stderr>: \x010=0\x01\n[1,1]<stderr>: end\x011=137\x01\n"
        b"PRTE has lost communication with a remote daemon.\n"
    )
    expected = b"[w0] begun\n[w11] Traceback\n[w1] end\nPRTE has lost communication with a remote daemon.\n"
    assert run_on_hosts._shown(lines) == expected


def test_simulated_hosts_have_addresses_for_documentation():
    assert simulated_addresses("2x3") == {"198.51.100.1": 3, "198.51.100.2": 3}


@pytest.mark.parametrize("text", ["", "2", "0x2", "2x0", "2x", "65x1", "2x2x2"])
def test_invalid_simulated_hosts_are_refused_with_an_example(text):
    with pytest.raises(CommandError, match="such as 2x4"):
        simulated_addresses(text)


def test_simulated_hosts_exclude_other_hosts(capsys):
    assert main(["run", "--hosts", "a:2", "--simulate-hosts", "2x2", "x.py"]) == 2
    assert "cannot be combined" in capsys.readouterr().err


def test_without_root_simulated_hosts_are_refused_with_the_alternative(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CommandError, match=r"requires root .* or use -n"), simulated_hosts(2):
        pass
