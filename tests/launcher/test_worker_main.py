"""A call in a worker, made here by a process of our own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile

import pytest

from ringlet.ipc.pickle_codec import pack_call
from ringlet.launcher.result_channel import ResultChannel
from ringlet.launcher.worker_main import _in_this_process


def call(function, *args):
    """Exit status, and the channel with the result, of one call."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as file:
        file.write(pickle.dumps((["a notebook"], pack_call(function, args, {}))))
        file.flush()
        program = f"import sys; sys.path[:] = {sys.path!r}; from ringlet.launcher.worker_main import main; "
        done = subprocess.run(
            [sys.executable, "-c", program + f"main({file.fileno()}, {writer})"],
            pass_fds=(file.fileno(), writer),
            capture_output=True,
            timeout=60,
            check=False,
        )
    os.close(writer)
    channel = ResultChannel(0, reader)
    while channel.read(0.0):
        pass
    channel.close()
    return done, channel


def arguments_of_the_program():
    return sys.argv


def test_a_result_is_sent_and_nothing_is_printed():
    done, channel = call(max, 3, 7)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert channel.value() == 7


def test_an_exception_is_sent_and_not_printed():
    done, channel = call(int, "x")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
    assert channel.failure.name == "ValueError"
    assert channel.failure.text.splitlines()[-1] == "ValueError: invalid literal for int() with base 10: 'x'"


def test_the_function_sees_the_arguments_of_the_program_that_launched_it():
    pytest.importorskip("cloudpickle")
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        assert call(arguments_of_the_program)[1].value() == ["a notebook"]
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_leaving_the_interpreter_sends_nothing():
    done, channel = call(sys.exit, 4)
    assert done.returncode == 4
    assert not channel.is_complete


def test_what_a_forked_child_returns_is_nobodys_result():
    ended = []

    def fork():
        child = os.fork()
        if child:
            ended.append(os.waitpid(child, 0)[1])
        return os.getpid()

    assert _in_this_process(fork, (), {}) == os.getpid()
    assert ended == [0]
