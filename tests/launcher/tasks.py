"""Functions that tests run on workers; cheap to import, because every worker imports them."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time


def index_of_this_worker():
    return json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def environment_of_this_worker():
    return dict(os.environ)


def say(word):
    print(word)
    print("trouble", file=sys.stderr)


def fail_on_worker_1():
    if index_of_this_worker() == 1:
        raise KeyError("weights")
    time.sleep(300)


def fail_on_worker_1_with_others(folder):
    if index_of_this_worker() == 1:
        (folder / "raises").touch()
        time.sleep(0.05)
        raise ValueError("bad data")
    from ringlet.errors import CollectiveAborted

    while not (folder / "raises").exists():
        time.sleep(0.001)
    raise CollectiveAborted("worker 1 raised ValueError: bad data")


def fail_on_worker_1_then_on_worker_0(folder):
    index = index_of_this_worker()
    atexit.register(time.sleep, 300)
    atexit.register((folder / str(index)).mkdir)  # when its exception is on its way
    while index == 0 and not (folder / "1").exists():
        time.sleep(0.01)
    raise ValueError("bad data") if index == 1 else ConnectionError("worker 1 has hung up")


class SlowToPickle(ValueError):
    """Creates a folder when it is pickled, which takes some time."""

    def __init__(self, folder):
        super().__init__("raised first")
        self.folder = folder

    def __reduce__(self):
        self.folder.mkdir(exist_ok=True)
        time.sleep(0.05)
        return ValueError, self.args


def fail_on_worker_0_slowly_then_on_worker_1(folder):
    if index_of_this_worker() == 0:
        raise SlowToPickle(folder / "0")
    while not (folder / "0").exists():
        time.sleep(0.001)
    raise KeyError("raised second")


def end_on_worker_1(status):
    if index_of_this_worker() == 1:
        os._exit(status)
    time.sleep(300)


def leave_a_child():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"]).pid


def train(bad_worker=None):
    """Run two steps of a strategy, after which one worker fails."""
    import numpy as np

    import ringlet

    strategy = ringlet.MultiWorkerMirroredStrategy()

    def step():
        replica = ringlet.get_replica_context()
        return replica.all_reduce(ringlet.ReduceOp.SUM, np.ones(2) * (replica.replica_id_in_sync_group + 1))

    for _ in range(2):
        result = strategy.run(step)
        if strategy.cluster_resolver.task_id == bad_worker:
            raise ValueError("bad data")
    return strategy.experimental_local_results(result)[0]
