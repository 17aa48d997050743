"""Fixtures of this folder."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.launcher.jobs import Launcher
from tests.processes.harness import PATIENCE_SECONDS


def pytest_configure(config):
    """Register the marker `job`."""
    config.addinivalue_line("markers", "job(script, *options, **more): runs this with `Launcher.run` in the background")


@pytest.fixture(autouse=True, scope="session")
def _hangups_are_heard():
    """Handle SIGHUP by default: under nohup, the tests and all programs that they start would ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def launcher(tmp_path):
    """A launcher of jobs, which end with the test."""
    started = Launcher(tmp_path)
    yield started
    started.close()


@pytest.fixture(scope="session")
def background(request, tmp_path_factory):
    """The jobs of all tests with the marker ``job``, run in the background."""
    marks = {item.nodeid: item.get_closest_marker("job") for item in request.session.items}
    launchers, threads = [], ThreadPoolExecutor(2)

    def run(mark):
        launchers.append(Launcher(tmp_path_factory.mktemp("job")))
        return launchers[-1].run(*mark.args, **mark.kwargs)

    yield {test: threads.submit(run, mark) for test, mark in marks.items() if mark is not None}
    threads.shutdown(cancel_futures=True)
    for started in launchers:
        started.close()


@pytest.fixture
def job(request, background):
    """The job of the test's marker, which has ended."""
    return background[request.node.nodeid].result(2 * PATIENCE_SECONDS)
