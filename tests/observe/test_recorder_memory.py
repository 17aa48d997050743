"""The recorder's memory can be read as soon as it is open."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")

PROGRAM = """
import os
from ringlet import _core
from ringlet.observe.recorder_memory import new_memory
_core.open_recorder(new_memory()[0], b"RNGLTREC")
print(os.pread(_core.recorder(), 9, 0))
"""


def test_an_open_recorder_has_its_header():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{b'RNGLTREC' + bytes(1)}{os.linesep}"
