"""What an uncaught error of Ringlet prints, and where everything stays visible."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import ringlet
from ringlet.errors.short_tracebacks import short_traceback

HINT = "(without the frames inside ringlet; RINGLET_TRACEBACK=full shows them"
OWN_FRAME = "ringlet/collectives/"

ERROR = "ringlet.collectives.Group(0)"
STEP = (
    "strategy = ringlet.MirroredStrategy(['CPU:0', 'CPU:1'])\n"
    "strategy.run(lambda: ringlet.get_replica_context().all_reduce('MEANS', 1.0))"
)
INTERRUPTED = (
    "import signal, threading\n"
    "member, other = ringlet.collectives.init_process_group(ranks=[0, 1], num_ranks=2)\n"
    "main = threading.main_thread().ident\n"
    "threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()\n"
    "member.all_reduce([1.0])"
)
INTERRUPTED_STEP = (
    "import signal\n"
    "strategy = ringlet.MirroredStrategy(2)\n"
    "def step():\n    signal.raise_signal(signal.SIGINT)\n    ringlet.replica_context().all_reduce('SUM', 1.0)\n"
    "strategy.run(step)"
)
LATE = (
    "import threading\n"
    "release = threading.Event()\n"
    "def step():\n"
    "    if ringlet.replica_context().replica_id_in_sync_group:\n        release.wait(60)\n"
    "    else:\n        ringlet.replica_context().all_reduce('SUM', 1.0)\n"
    "try:\n    ringlet.MirroredStrategy(2).run(step)\nfinally:\n    release.set()"
)
CONFIGURATION = """
os.environ["TF_CONFIG"] = '{"clusters": {"worker": ["a:1"]}}'
ringlet.MultiWorkerMirroredStrategy()
"""
OUTSIDE = "with ringlet.MirroredStrategy(2).scope():\n    ringlet.replica_context()"
IN_THREAD = f"import threading\ndef work():\n    {ERROR}\nt = threading.Thread(target=work); t.start(); t.join()"


def printed(program: str, before: str = "", **environ: str) -> str:
    """What a program prints outside of pytest."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-c", f"import os, sys\n{before}\nimport ringlet\n{program}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=inherited | environ)
    return done.stderr + done.stdout


def test_notes_are_printed_where_python_does_not_print_them():
    silent = "sys.excepthook = lambda *_: None\nsys.excepthook.__module__ = 'ringlet.silent'"  # as in Python 3.10
    program = "try:\n    ringlet.MirroredStrategy(2).run(lambda: 1 / 0)\nfinally:\n    sys.version_info = (3, {})"
    assert printed(program.format(11), silent) == ""
    assert printed(program.format(10), silent).startswith("raised in replica 0 of 2")


@pytest.mark.parametrize(
    ("program", "last"),
    [
        (ERROR, "ringlet.errors.InvalidArgumentError: a group has 1 to 4096 ranks, not 0."),
        (STEP, "'MEANS' is not a valid ReduceOp: use 'SUM' or 'MEAN'"),
        (INTERRUPTED, "KeyboardInterrupt"),
        (INTERRUPTED_STEP, "KeyboardInterrupt"),
        (LATE, "ringlet.errors.DeadlineExceededError: all_reduce(SUM, float64[]), call 1 of rank 0, waited 0.1 s for"),
        (IN_THREAD, "ringlet.errors.InvalidArgumentError: a group has 1 to 4096 ranks, not 0."),
        (CONFIGURATION, "'clusters' is unknown, the nearest key is 'cluster'"),  # through functools.cached_property
        (OUTSIDE, "RuntimeError: replica_context() was called in cross-replica context"),
        ("ringlet.init_process_group", "AttributeError: module 'ringlet' has no attribute 'init_process_group'"),
        (f"import functools\nfunctools.reduce(lambda a, b: {ERROR}, [1, 2])", "not 0."),
    ],
    ids=[
        "call",
        "plain class in a step",
        "interrupted",
        "interrupted step",
        "late",
        "thread",
        "library",
        "scope",
        "absent name",
        "through C",
    ],
)
def test_an_error_raised_on_purpose_shows_the_frames_of_the_program_alone(program, last):
    text = printed(program, RINGLET_TIMEOUT_SECONDS="0.1" if program is LATE else "60")
    assert "ringlet/" not in text.partition("Traceback")[2].replace("inside ringlet;", "").replace(last, "")
    assert "functools" not in text.replace("functools.reduce(", "")  # Python 3.13 shows the lines of `python -c`
    assert "<module>" in text or "in work" in text
    assert last in text
    name = text.rpartition("ringlet.errors.")[2].partition(":")[0] if "ringlet.errors." in text else ""
    described = f"; `ringlet explain {name}` describes the error" if name else ""
    assert text.rstrip().endswith(f"{HINT}{described})")


@pytest.mark.parametrize(
    ("program", "environ"),
    [
        (ERROR, {"RINGLET_TRACEBACK": "full"}),
        (ERROR, {"PYTEST_CURRENT_TEST": "test_x"}),
        (f"sys.settrace(lambda *_: None)\n{ERROR}", {}),
        (f"sys.breakpointhook = print\n{ERROR}", {}),
        (f"import logging\ntry:\n    {ERROR}\nexcept ValueError:\n    logging.exception('logged')", {}),
        (f"import traceback\ntry:\n    {ERROR}\nexcept ValueError:\n    traceback.print_exc()", {}),
        (f"import threading\nthreading.excepthook = lambda a: sys.__excepthook__(*a[:3])\n{IN_THREAD}", {}),
    ],
    ids=["asked for", "pytest", "trace", "debugger", "log", "traceback", "own thread hook"],
)
def test_everything_shows_where_it_is_asked_for_and_where_ringlet_does_not_print(program, environ):
    text = printed(program, **environ)
    assert OWN_FRAME in text
    assert HINT not in text


def test_unexpected_errors_and_causes_show_everything():
    unexpected = printed("ringlet.MirroredStrategy(['CPU:0', 'CPU:1']).run(int, args=('x',))")
    assert "ringlet/strategy/" in unexpected
    assert "invalid literal for int()" in unexpected
    of_the_program = printed("ringlet.MirroredStrategy(['CPU:0', 'CPU:1']).run(lambda: 1 / 0)")
    assert "ringlet/strategy/" in of_the_program
    cause = printed(f"try:\n    {ERROR}\nexcept ValueError as error:\n    raise RuntimeError('outer') from error")
    assert OWN_FRAME in cause
    context = printed(f"try:\n    {ERROR}\nexcept ValueError:\n    {ERROR.replace('0', '-1')}")
    first, second = context.split("During handling")
    assert OWN_FRAME in first
    assert OWN_FRAME not in second
    for text in (unexpected, of_the_program, cause):
        assert HINT not in text


def test_a_hook_that_the_program_installed_before_sees_everything():
    hook = "functools.partial(traceback.print_exception)"  # which has no __module__
    text = printed(ERROR, before=f"import functools, traceback\nsys.excepthook = {hook}")
    assert OWN_FRAME in text
    assert HINT not in text


def test_workers_of_the_launcher_print_the_same(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import ringlet\n{ERROR}\n")
    command = f"[sys.executable, '-m', 'ringlet', 'run', '-n', '2', {str(script)!r}]"
    text = printed(f"import subprocess; subprocess.call({command})")
    assert OWN_FRAME not in text
    assert f"] {HINT}" in text, "of the worker that failed first"


def test_exceptions_keep_their_tracebacks_for_post_mortem_debugging():
    show = "sys.excepthook(type(error), error, error.__traceback__)\n    print(error.__traceback__.tb_next is not None)"
    text = printed(f"try:\n    {ERROR}\nexcept ValueError as error:\n    {show}")
    assert HINT in text
    assert text.endswith("True\n")


def test_an_error_that_no_frame_of_a_program_leads_to_is_left_whole():
    with pytest.raises(ValueError, match="a group has") as caught:
        ringlet.collectives.Group(0)
    error = caught.value
    inner = error.__traceback__.tb_next
    assert short_traceback(error).tb_next is None
    error.__traceback__ = inner
    assert short_traceback(error) is inner
