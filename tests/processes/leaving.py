"""A group of which one rank leaves while the others wait."""

from __future__ import annotations

__all__ = ["LEAVE", "WAIT", "start_all"]

# The first rank to be lost says "ready"; what comes next in its script ends it. The others wait in a barrier.
WAIT = """
from ringlet.collectives import init_process_group
import ringlet
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
member = init_process_group(rank, num_ranks, name=name, timeout_seconds=50)
tell("ready")
try:
    member.barrier()
    tell("passed")
except Exception as error:
    known = {key: value for key, value in vars(error).items() if key in ("rank", "pid", "reason")}
    tell([type(error).__name__, str(error), known])
"""
LEAVE = """
from ringlet.collectives import init_process_group
rank, num_ranks, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
member = init_process_group(rank, num_ranks, name=name, timeout_seconds=50)
tell("ready")
hear()
"""


def start_all(processes, name, ending, *, num_ranks=3, leaver=1):
    """Start ranks, one of which ends as given; return that rank and the others."""
    others = [processes.start(WAIT, rank, num_ranks, name) for rank in range(num_ranks) if rank != leaver]
    leaving = processes.start(LEAVE + ending, leaver, num_ranks, name)
    for process in (leaving, *others):
        assert process.told() == "ready"
    return leaving, others
