"""mpi4py is imported only in a job that MPI started on several hosts; without it, the error names the command."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ringlet.cluster.environment import VARIABLES
from ringlet.collectives import init_process_group
from ringlet.collectives.hosts.mpi_transport import MpiTransport, PeerFailed, mpi_transport
from ringlet.errors import FailedPreconditionError

TWO_HOSTS = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}


def test_without_mpi_the_error_names_the_extra_and_the_command(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in TWO_HOSTS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    mpi_transport.cache_clear()
    with pytest.raises(FailedPreconditionError, match=r"4 on several hosts.*pip install 'ringlet\[mpi\]'.*mpiexec"):
        init_process_group()


class Initialized(Exception):
    """Raised by the fake mpi4py of the next test, where the real one would initialize MPI."""


@pytest.mark.parametrize(("given", "expected"), [(None, "send,inplace"), ("send,put", "send,put")])
def test_open_mpi_is_told_how_to_send_before_it_is_initialized(given, expected, monkeypatch):
    class Package(SimpleNamespace):
        rc = SimpleNamespace()

        @property
        def MPI(self):
            raise Initialized(os.environ[variable])

    variable = "OMPI_MCA_btl_tcp_flags"
    monkeypatch.setenv(variable, given or "")
    if given is None:
        monkeypatch.delenv(variable)
    monkeypatch.setitem(sys.modules, "mpi4py", Package())
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(Initialized, match=f"^{expected}$"):
        mpi_transport.__wrapped__(SimpleNamespace(size=4, source="the test"))


@pytest.mark.parametrize(
    ("library", "variables", "is_warned"),
    [
        ("Open MPI v5.0.11", {}, True),
        ("Open MPI v5.0.11", {"OMPI_MCA_btl_tcp_flags": "send"}, False),
        ("MPICH Version: 5.0", {}, False),
    ],
)
def test_a_program_that_has_initialized_open_mpi_without_the_setting_is_warned(
    library, variables, is_warned, monkeypatch, caplog
):
    monkeypatch.setenv("OMPI_MCA_btl_tcp_flags", "")
    monkeypatch.delenv("OMPI_MCA_btl_tcp_flags")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    initialized = SimpleNamespace(COMM_WORLD=SimpleNamespace(size=1), Get_library_version=lambda: library)
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(rc=SimpleNamespace(), MPI=initialized))
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", initialized)
    with pytest.raises(FailedPreconditionError, match="connects only 1"):
        mpi_transport.__wrapped__(SimpleNamespace(size=4, source="the test"))
    assert ("OMPI_MCA_btl_tcp_flags=send,inplace" in caplog.text) == is_warned


@pytest.mark.parametrize("environ", [{}, {**TWO_HOSTS, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}])
def test_mpi_is_not_imported_on_one_host(environ):
    program = (
        "import sys, ringlet\n"
        "ringlet.collectives.init_process_group(0, 1).all_reduce(1)\n"
        "ringlet.MirroredStrategy(2), ringlet.rank()\n"
        "assert 'mpi4py' not in sys.modules and 'ringlet.collectives.hosts' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], env=environ, check=True, timeout=60)


@pytest.mark.parametrize("call", ["send", "receive", "prepare_send", "prepare_receive"])
def test_an_error_of_mpi_is_a_failed_peer(call, monkeypatch):
    monkeypatch.setattr("multiprocessing.util.Finalize", lambda *arguments, **options: None)

    class Communicator:
        rank, size = 0, 2

        def __getattr__(self, name):
            def fails(*arguments):
                raise RuntimeError(f"{name}: process failed")

            return fails

    communicator = Communicator()
    communicator.Dup, communicator.Set_errhandler = lambda: communicator, lambda handler: None
    communicator.Get_attr = lambda key: 32767
    names = SimpleNamespace(COMM_WORLD=communicator, Exception=RuntimeError, ERRORS_RETURN=0, BYTE=0, TAG_UB=0)
    transport = MpiTransport(names)
    with pytest.raises(PeerFailed, match="process failed"):
        getattr(transport, call)(np.zeros(8, np.uint8), 1, 0)
