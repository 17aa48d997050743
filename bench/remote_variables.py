"""The cost of variables on a parameter server over TCP, as between hosts, beside the same in shared memory.

Both clusters are on this machine, so that the network is the loopback interface. The results are checked first::

    python -m bench.remote_variables --rounds 7
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

import ringlet
from bench.harness import Statistics, alternate, ratios, seconds_per_call
from bench.report import format_seconds, format_table

_SERVER = "import sys, ringlet; ringlet.Server(eval(sys.argv[1]), *eval(sys.argv[2])).join()"
_ROWS, _WIDTH, _SOME = 100_000, 16, 1000


def _questions(strategy: ringlet.ParameterServerStrategy) -> dict[str, Callable[[], object]]:
    """Return the calls to measure, after checking what they do."""
    with strategy.scope():
        number, big = ringlet.Variable(0), ringlet.Variable(np.zeros(1 << 17))
        table = ringlet.Variable(np.zeros((_ROWS, _WIDTH), np.float32))
    rows = np.arange(0, _ROWS, _ROWS // _SOME)
    updates = ringlet.IndexedSlices(np.ones((_SOME, _WIDTH), np.float32), rows)
    ones = np.ones(1 << 17)
    number.assign_add(3)
    big.assign(ones)
    table.scatter_add(updates)
    if int(number) != 3 or not (big.numpy() == ones).all() or not (table.sparse_read(rows) == 1).all():
        raise AssertionError("a variable has a wrong value")
    return {
        "push 8 B": lambda: number.assign_add(1),
        "pull 8 B": lambda: int(number),
        "push 1 MiB": lambda: big.assign(ones),
        "pull 1 MiB": big.numpy,
        f"push {_SOME} rows of 64 B": lambda: table.scatter_add(updates),
        f"pull {_SOME} rows of 64 B": lambda: table.sparse_read(rows),
    }


@contextlib.contextmanager
def _over_tcp() -> Iterator[ringlet.ParameterServerStrategy]:
    with contextlib.ExitStack() as bound:
        ports = [bound.enter_context(socket.create_server(("localhost", 0))).getsockname()[1] for _ in range(2)]
    cluster = {"worker": [f"localhost:{ports[0]}"], "ps": [f"localhost:{ports[1]}"]}
    os.environ["RINGLET_SECRET"] = os.urandom(16).hex()
    command = [sys.executable, "-c", _SERVER, repr(cluster)]
    servers = [subprocess.Popen([*command, repr((job, 0))]) for job in cluster]
    try:
        spec = ringlet.train.ClusterSpec(cluster)
        strategy = ringlet.ParameterServerStrategy(ringlet.cluster_resolver.SimpleClusterResolver(spec))
        tasks = strategy.extended._cluster()  # type: ignore[attr-defined]
        del os.environ["RINGLET_SECRET"]
        yield strategy
        tasks.stop()
    finally:
        for server in servers:
            server.kill()
            server.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure in alternation, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--milliseconds", type=float, default=50.0, help="length of one timed region (%(default)s)")
    options = parser.parse_args(arguments)
    resolver = ringlet.cluster_resolver.LocalClusterResolver(workers=1, ps=1)
    with _over_tcp() as strategy:
        clusters = {"TCP": strategy, "shared memory": ringlet.ParameterServerStrategy(resolver)}
        subjects = {
            (what, how): partial(seconds_per_call, call, options.milliseconds / 1e3)
            for how, each in clusters.items()
            for what, call in _questions(each).items()
        }
        found = alternate(subjects, rounds=options.rounds)
    rows = []
    for what in dict.fromkeys(what for what, _ in found):
        tcp, shared = found[what, "TCP"], found[what, "shared memory"]
        times = [format_seconds(Statistics(tuple(seconds)).median) for seconds in (shared, tcp)]
        rows.append([what, *times, f"{ratios(tcp, shared).median:.0f} x"])
    print(format_table(("what", "shared memory", "TCP", "TCP / shared"), rows))
    resolver.stop()


if __name__ == "__main__":
    sys.exit(main())
