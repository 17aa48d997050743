"""One task of a cluster with parameter servers on two hosts; the coordinator prints what it finds as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import numpy as np

import ringlet
from ringlet.ipc import authenticated_tcp

CALLS = 60
authenticated_tcp.LOSS_SECONDS = 5  # as in the test
resolver = ringlet.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type != "chief":
    ringlet.Server(resolver).join()
    sys.exit()


def tell(**found):
    print(json.dumps(found), flush=True)


def timed(call):
    begin = time.monotonic()
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error), time.monotonic() - begin
    return "", "", time.monotonic() - begin


def step(number):
    total.assign_add(1)
    table.scatter_add(ringlet.IndexedSlices(np.ones((2, 3)), [number % 5, 5 + number % 5]))
    return os.uname().nodename, os.getpid(), float(table.sparse_read([number % 5])[0, 0])


def schedule(count):
    return [coordinator.schedule(step, args=(number,)) for number in range(count)]


try:
    strategy = ringlet.ParameterServerStrategy(
        resolver, ringlet.experimental.partitioners.MinSizePartitioner(min_shard_bytes=64, max_shards=2)
    )
    coordinator = ringlet.coordinator.ClusterCoordinator(strategy)
except Exception as error:
    tell(error=type(error).__name__, text=str(error))
    sys.exit(1)
with strategy.scope():
    total, table = ringlet.Variable(0), ringlet.Variable(np.zeros((10, 3)))
ran = coordinator.fetch(schedule(CALLS))
tell(
    total=int(total),
    rows=table.numpy().tolist(),
    shards=[shard.device for shard in table.variables],
    hosts=sorted({host for host, _, _ in ran}),
)

if sys.argv[1] == "kill":
    pids = {host: pid for host, pid, _ in ran}
    queued = schedule(CALLS)
    os.kill(pids[max(pids)], signal.SIGKILL)
    error, text, seconds = timed(lambda: coordinator.fetch(queued))
    tell(error=error, text=text, seconds=seconds, total=int(total))
    server = strategy.extended._cluster().pid_of("ps", 1)
    coordinator.schedule(time.sleep, args=(30,))
    os.kill(server, signal.SIGKILL)
    error, text, seconds = timed(coordinator.join)
    tell(error=error, text=text, seconds=seconds, total=int(total), server=server)
else:
    for _ in range(2):
        coordinator.schedule(time.sleep, args=(30,))
    error, text, seconds = timed(coordinator.join)
    tell(error=error, text=text, seconds=seconds)
