"""What only the processes of a group may know stands in no place where others look (E7).

That is the token of a connected group. It is made of known bytes here, and looked for in all forms in which
it might show.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ringlet.rendezvous.connected_group import ConnectedGroup

TOKEN = b"known to the group and no other."
JOB = "the-job-of-a-test"
FORMS = {
    "text": TOKEN.decode(),
    "hexadecimal": TOKEN.hex(),
    "base64": base64.b64encode(TOKEN).decode(),
    "numbers": str(list(TOKEN))[1:-1],
    "epoch": str(int.from_bytes(TOKEN[:7], "little")),
}

WORKER = """
import gc, logging, secrets
logging.basicConfig(level=logging.DEBUG)
token = bytes.fromhex(sys.argv[1][::-1])
secrets.token_bytes = lambda size: token[:size]
del sys.argv[1:]
import numpy as np, ringlet
strategy = ringlet.MultiWorkerMirroredStrategy()
def step():
    return ringlet.get_replica_context().all_reduce("SUM", np.ones(3))
with strategy.scope():
    variable = ringlet.Variable(np.zeros(3))
strategy.run(step)
workers = strategy.extended._workers
workers.barrier("met")
texts = [repr(strategy), str(strategy), repr(workers), repr(variable)]
for thing in gc.get_objects():
    if type(thing).__module__.startswith("ringlet"):
        texts += [repr(thing), str(thing)]
tell(texts)
hear()
if workers.worker_index == 1:
    raise KeyError("weights")
strategy.run(step)
"""


def shown_in(text: str) -> list[str]:
    return [name for name, form in FORMS.items() if form in text]


def text_of(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""


def seen_from_outside(pid: int) -> dict[str, str]:
    """What the system shows of a process to its user, and some of it to all."""
    folder = Path(f"/proc/{pid}")
    files = [folder / name for name in ("cmdline", "comm", "maps", "environ", "status")]
    files += (folder / "task").glob("*/comm")
    seen = {str(path): text_of(path) for path in files}
    for path in (folder / "fd").iterdir():
        seen[str(path)] = str(path.readlink()) if path.is_symlink() else ""
    return seen


@pytest.fixture
def workers(processes, tmp_path):
    """Two workers of a cluster that have met."""
    job = {"RINGLET_JOB_ID": f"{JOB}-{uuid.uuid4()}", "TMPDIR": str(tmp_path)}
    cluster = {"worker": ["localhost:1", "localhost:2"]}
    started = []
    for index in range(2):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        started.append(processes.start(WORKER, TOKEN.hex()[::-1], environ={**job, "TF_CONFIG": config}))
    return started


def test_the_token_of_a_meeting_is_in_no_text_of_any_object_log_or_error(workers):
    for worker in workers:
        texts = worker.told()
        assert len(texts) > 20
        assert [shown_in(text) for text in texts if shown_in(text)] == []
    for worker in workers:
        worker.say()
    assert [worker.wait() for worker in workers] == [1, 1]
    said = [worker.said() for worker in workers]
    assert "CollectiveAborted" in said[0]
    assert "KeyError: 'weights'" in said[1]
    assert [shown_in(text) for text in said] == [[], []]


def test_the_token_of_a_meeting_is_nowhere_where_the_system_shows_processes(workers, tmp_path):
    for worker in workers:
        worker.told()
    for worker in workers:
        for place, text in seen_from_outside(worker.pid).items():
            assert shown_in(text) == [], place
    for table in ("/proc/net/unix", "/proc/mounts"):
        assert shown_in(text_of(Path(table))) == [], table
    assert list(tmp_path.iterdir()) == [], "no file is left anywhere either"


def test_what_holds_the_token_does_not_show_it():
    assert shown_in(repr(ConnectedGroup(0, [], TOKEN))) == []


def test_the_name_of_a_meeting_does_not_tell_the_job(workers):
    for worker in workers:
        worker.told()
    # All users of the machine can read these names.
    names = [line for line in text_of(Path("/proc/net/unix")).splitlines() if "@ringlet-" in line]
    assert names
    assert [name for name in names if JOB in name or "localhost" in name] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_read_the_environment_of_a_worker(workers):
    workers[0].told()
    done = subprocess.run(
        ["/bin/cat", f"/proc/{workers[0].pid}/environ"], user=65534, group=65534, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout == b""


LOOK = """
import os
lines = []
for pid in filter(str.isdecimal, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            lines.append(file.read())
    except OSError:
        pass  # it has ended
job = os.environ["RINGLET_JOB_ID"].encode()
print(any(b"ringlet" in line for line in lines), any(job in line for line in lines))
"""


def test_the_launcher_shows_no_job_id_in_command_lines(tmp_path):
    script = tmp_path / "look.py"
    script.write_text(LOOK, encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert sorted(done.stdout.splitlines()) == ["[w0] True False", "[w1] True False"], done.stderr
