"""A peer in one process: it starts with its block and ends with it, however that goes."""

from __future__ import annotations

import os

import pytest

from bench import single_peer
from bench.peer_process import PeerFailure
from bench.single_peer import SinglePeer
from tests.bench.stand_ins import make_environment


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """Gives a peer in an environment whose program starts in the way that the test says."""
    monkeypatch.setattr(single_peer, "_START_SECONDS", 30.0)

    def make(text):
        make_environment(tmp_path, "jax", ["numpy", "jax", "jaxlib"])
        script = tmp_path / "peer.py"
        script.write_text(text, encoding="utf-8")
        return SinglePeer(tmp_path, "jax", script, 1)

    return make


def test_an_environment_that_is_not_there_comes_with_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"for jax below .*: python -m bench\.environments jax --into .* leave"):
        SinglePeer(tmp_path, "jax", "jax_sharding.py", 1)


def test_a_peer_that_does_not_start_is_told_with_what_it_wrote(peer):
    with pytest.raises(PeerFailure, match="no such device"), peer("raise SystemExit('no such device')"):
        pass


def test_a_peer_ends_with_its_block(peer, tmp_path):
    pid_file = tmp_path / "pid"
    text = f"""
import json, os, sys
open({str(pid_file)!r}, "w").write(str(os.getpid()))
sum(range(3_000_000))  # the system counts time in hundredths of a second
print(json.dumps({{"version": "1", "variants": {{}}}}), flush=True)
sys.stdin.read()
"""
    with peer(text) as entered:
        assert entered.cpu_seconds() > 0
        pid = int(pid_file.read_text())
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
