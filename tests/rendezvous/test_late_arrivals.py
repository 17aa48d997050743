"""The thread that keeps the name of a complete group ends whenever its group is found to be over."""

from __future__ import annotations

import pytest

from tests.processes.harness import descriptors_of, eventually

# As when a collection finds the member in a cycle: while the thread that collects holds a lock of `threading`, or
# on the refusing thread.
PRELUDE = """
from ringlet.collectives import init_process_group
import gc, threading
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank, 2, name, timeout_seconds=50)
member.barrier()
class Box: pass
box = Box()
box.me, box.member = box, member
gc.disable()
del box, member
"""

ENDINGS = {
    "under a lock": """
with threading._active_limbo_lock:
    started = time.monotonic()
    gc.collect()
    assert time.monotonic() - started < 0.9
tell("collected")
""",
    "on the refusing thread": """
from ringlet.rendezvous import late_arrivals
refuse, done = late_arrivals.refuse, threading.Event()
def collect_and_refuse(*arguments, **options):
    gc.collect()
    refuse(*arguments, **options)
    done.set()
late_arrivals.refuse = collect_and_refuse
tell("waits")
assert done.wait(50)
tell("collected")
""",
}
REST = """
end = time.monotonic() + 50
while any(thread.name == "ringlet-late-arrivals" for thread in threading.enumerate()):
    assert time.monotonic() < end
    time.sleep(0.01)
tell("ended")
hear()
"""
STRANGER = """
from ringlet.collectives import init_process_group
try:
    init_process_group(0, 2, sys.argv[1], timeout_seconds=20)
except Exception as error:
    tell(type(error).__name__)
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_member_may_be_collected_anywhere(processes, name, ending):
    other = processes.start(PRELUDE + "hear()", 1, name)
    first = processes.start(PRELUDE + ENDINGS[ending] + REST, 0, name)
    told = first.told()
    if told == "waits":
        assert processes.start(STRANGER, name).told() == "FailedPreconditionError"
        told = first.told()
    assert (told, first.told()) == ("collected", "ended")
    assert eventually(lambda: descriptors_of(first.pid) <= 4), "no socket or handle is left"
    for process in (first, other):
        process.say()
        assert process.wait() == 0


TOO_MANY = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
from ringlet.rendezvous import host
host.MOST_PROCESSES = 2
try:
    rendezvous(Job(sys.argv[2], "", 4), [int(sys.argv[1])], 50)
except Exception as error:
    tell([type(error).__name__, str(error)])
"""


def test_more_processes_than_a_group_can_have_are_refused_as_soon_as_they_come(processes, name):
    started = [processes.start(TOO_MANY, rank, name) for rank in range(2)]
    for process in started:
        kind, text = process.told()
        assert kind == "FailedPreconditionError"
        assert "has more than 2 processes: assign more ranks to each process" in text
