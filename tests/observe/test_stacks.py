"""Which frames describe a rank: those of its own thread, and of other threads if that is unknown."""

from __future__ import annotations

import inspect
import queue
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ringlet.observe.stacks import call_site, location, rank_stacks
from tests.processes.harness import eventually


@contextmanager
def parked(*names):
    """Threads that wait in `park`; their idents."""
    release = threading.Event()

    def park():
        release.wait()

    threads = [threading.Thread(target=park, name=name) for name in names]
    for thread in threads:
        thread.start()
    idents = [thread.ident for thread in threads]
    try:
        assert eventually(lambda: all("release.wait" in text for text in rank_stacks([(0, t, True) for t in idents])))
        yield idents
    finally:
        release.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def alone(monkeypatch):
    """No frames of the threads of other tests or of pytest's."""
    frames = sys._current_frames
    others = dict.fromkeys(frames()) | {thread.ident: thread for thread in threading.enumerate()}

    def own_frames():
        # Identifiers of ended threads are used again, also those of threads that `threading` did not know.
        known = {thread.ident for thread in threading.enumerate()}
        left = {i for i, thread in others.items() if (i not in known if thread is None else thread.is_alive())}
        return {thread: frame for thread, frame in frames().items() if thread not in left}

    monkeypatch.setattr("sys._current_frames", own_frames)


_COLLECTS = """
import gc, threading, weakref
from ringlet.observe.stacks import location, rank_stacks, thread_stacks

class Node:
    pass

def leave_garbage():
    node = Node()
    node.itself = node
    weakref.finalize(node, lambda: threading.Thread(target=int).start())

for report in (lambda: rank_stacks([(0, 0, True)]), lambda: thread_stacks([0]), lambda: location(0)):
    for size in range(60):
        gc.collect()
        gc.disable()
        leave_garbage()
        gc.set_threshold(60)
        gc.enable()
        kept = [[] for _ in range(size)]
        report()
        assert gc.isenabled()
"""


def test_a_report_ends_although_the_garbage_collector_runs_and_starts_a_thread():
    subprocess.run([sys.executable, "-c", _COLLECTS], timeout=30, check=True)


def test_a_call_site_is_the_innermost_frame_outside_ringlet():
    number = inspect.currentframe().f_lineno + 1
    assert call_site().endswith(f"test_stacks.py:{number})")
    assert call_site().startswith("in test_a_call_site_is_the_innermost_frame_outside_ringlet (")


def test_a_thread_of_ringlet_has_the_place_of_the_main_thread():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(call_site).result().startswith("while the main thread is in ")


def test_the_location_of_a_thread_is_its_line_of_the_program():
    assert location(threading.get_ident()).startswith("in test_the_location_of_a_thread_is_its_line_of_the_program (")
    assert location(None) == location(-1) == "in a thread that has ended"
    with parked("one") as [one]:
        assert location(one).startswith("in park (")
    with ThreadPoolExecutor(1) as pool:
        idle = pool.submit(threading.get_ident).result()
        assert location(idle).startswith("in _worker (")


@pytest.mark.parametrize(
    ("modules", "shown"),
    [
        # modules from the innermost frame outwards, frames in the report
        (["__main__", "IPython.core.interactiveshell", "ipykernel.kernelapp"], ["__main__.py"]),
        (["tornado.web", "__main__", "IPython.core.magics"], ["tornado.web.py", "__main__.py"]),
        (["tornado.ioloop", "ipykernel.thread"], []),
        (["tornado.web"], ["tornado.web.py"]),
        (["task", "ringlet.launcher.worker_main", "__main__"], ["task.py"]),
    ],
)
def test_the_frames_of_a_program_are_shown_without_those_that_call_it(alone, modules, shown):
    release = threading.Event()
    function = release.wait
    for module in modules:
        names = {"__name__": module, "call": function}
        exec(compile("def run():\n    call()", f"{module}.py", "exec"), names)
        function = names["run"]
    thread = threading.Thread(target=function)
    thread.start()
    try:
        assert eventually(lambda: sys._current_frames()[thread.ident].f_code.co_name == "wait")
        [text] = rank_stacks([(0, thread.ident, True)])
        lines = [f"\n    {file}:2 in run" for file in shown]
        assert text == (":" + "".join(lines) if lines else ": idle")
    finally:
        release.set()
        thread.join()


def test_each_rank_has_the_frames_of_its_thread(alone):
    with parked("one", "two") as (one, two):
        texts = rank_stacks([(0, one, True), (1, two, False)])
    for text in texts:
        assert text.startswith(":\n    ")
        assert "test_stacks.py:" in text
        assert "in park: release.wait()" in text
        assert "threading.py" not in text


def test_the_thread_of_another_ranks_call_does_not_describe_a_rank(alone):
    with parked("caller", "elsewhere") as (caller, elsewhere):
        _, text = rank_stacks([(0, caller, True), (1, caller, False)])
        alone_text = rank_stacks([(0, caller, True)])[0]
        assert text == rank_stacks([(2, elsewhere, True)])[0] == alone_text  # the only other thread


def test_a_rank_without_a_thread_has_all_threads_that_are_not_in_a_call(alone):
    with parked("caller", "loader", "saver") as (caller, _, _):
        (_, text) = rank_stacks([(0, caller, True), (1, 0, False)])
    assert text.startswith(": one of these threads\n    in thread ")
    assert "in thread loader:\n" in text
    assert "in thread saver:\n" in text
    assert "caller" not in text


def test_threads_of_the_standard_library_alone_describe_no_rank(alone):
    release = threading.Event()
    thread = threading.Thread(target=queue.SimpleQueue().get)
    timer = threading.Timer(3600, release.set)
    for each in (thread, timer):
        each.daemon = True
        each.start()
    assert rank_stacks([(0, 0, False)]) == [": idle"]
    timer.cancel()


def test_a_rank_without_any_frames_is_idle(alone):
    assert rank_stacks([(0, 0, False), (1, 12345, True)]) == [": idle", ": idle"]


def test_long_stacks_are_shortened(alone):
    release = threading.Event()

    def descend(depth):
        return descend(depth - 1) if depth else release.wait()

    thread = threading.Thread(target=descend, args=(30,), daemon=True)  # it must not outlive a test that fails
    thread.start()
    assert eventually(lambda: rank_stacks([(0, thread.ident, True)])[0].endswith("and 23 more frames"))
    (text,) = rank_stacks([(0, thread.ident, True)])
    release.set()
    thread.join()
    assert text.count("\n") == 9
