"""How processes that were started one by one become a group.

The process that has rank 0 listens under an abstract name, which the system keeps apart for each network namespace and
takes back when the process ends; the others come to it. Whoever comes says which process of which job it is, and is
seated, or sent away with the reason. When every rank has come, each pair of processes is given a connection and handles
of each other, and all go on. From then on whoever comes is sent away.

    rank 0                              rank 1, rank 2, ...
    listens  <------- hello ----------  connects, again and again until somebody listens
    seats it  -----  waiting  ------->  knows who is there
    all are there -- complete, peers, go ->  has a connection to each process

A process that leaves says so, and its seat is free again; one that ends without a word is lost, and with it the group:
every process that had come raises.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.client import Visit
from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.host import Gathering
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.listener import listen
from ringlet.rendezvous.membership import Meeting, Peer

__all__ = ["Meeting", "Peer", "meet"]

# A back-off from the time that a rank needs to start listening up to what nobody notices.
_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


def meet(job: Job, ranks: Sequence[int], timeout_seconds: float) -> Meeting:
    """Find the other processes of a job on this machine, and connect to each of them.

    Parameters
    ----------
    job : Job
        The same in all of them.
    ranks : sequence of int
        Those that this process drives. Not all: a process that has every rank meets nobody.
    timeout_seconds : float
        How long to wait for the others; may be infinite.

    Returns
    -------
    Meeting
        To be closed once the group is over.

    Raises
    ------
    FailedPreconditionError
        If this process cannot be of the group: another holds its rank, or runs another version, or was told another
        number of ranks, or cannot see this one.
    PermissionError
        If another user has taken the name.
    DeadlineExceededError
        If some ranks did not come; names them.
    WorkerLostError
        If a process that had come ended.
    OSError
        If this process has no descriptor left.
    """
    address = job.address()
    hello = Hello.of_this_process(job, ranks)
    deadline = Deadline.after(timeout_seconds)
    visit = Visit(job, hello, address, deadline)
    pause = _FIRST_PAUSE_SECONDS
    while True:
        if hello.ranks[0] == 0 and (listener := listen(address)) is not None:
            return Gathering(job, hello, listener).gather(deadline)
        if (meeting := visit.attempt()) is not None:
            return meeting
        if deadline.is_over():
            raise visit.give_up()
        time.sleep(deadline.left(pause))
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
