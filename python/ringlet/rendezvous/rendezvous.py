"""Rendezvous: forms a group of separately started processes.

The process of rank 0 is the host. It listens under an abstract name, which is local to the network namespace and is
released when the process exits. The other processes connect and send a handshake; each is admitted, or refused with
the reason. Once every rank is present, each pair of processes is connected and exchanges pidfds. Later connections are
refused.

    rank 0                                   rank 1, rank 2, ...
    listens  <-------- handshake ----------  connect, with retries until the host listens
    admits them  ------- waiting --------->  receive the list of the present ranks
    has all ranks -- complete, peer, go -->  have a connection to each process

A process other than the host that times out, fails or is interrupted sends "leaving", and other processes can take its
ranks. A process that exits without this message is lost: every connected process raises an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ringlet.errors.exception_notes import add_note
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.client import RendezvousClient
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.host import RendezvousHost
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.listener import listen
from ringlet.rendezvous.rendezvous_errors import waiting_text

# First and maximum delay between attempts: a host usually listens after the first delay, and users do not notice the
# maximum.
_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


def rendezvous(job: Job, ranks: Sequence[int], timeout_seconds: float) -> ConnectedGroup:
    """Connect to all other processes of a job on this machine; the time-out may be infinite.

    `ranks` are the ranks that this process drives. The caller closes the result. Raises the errors of
    `init_process_group`.
    """
    address = job.address()
    handshake = Handshake.of_this_process(job, ranks)
    deadline = Deadline.after(timeout_seconds)
    visit = RendezvousClient(job, handshake, address, deadline)
    pause, host = _FIRST_PAUSE_SECONDS, None
    try:
        while True:
            if handshake.ranks[0] == 0 and (listener := listen(address)) is not None:
                host = RendezvousHost(job, handshake, listener)
                return host.wait_for_all(deadline)
            if (connected := visit.attempt()) is not None:
                return connected
            if deadline.is_over():
                raise visit.give_up()
            time.sleep(deadline.left(pause))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
    except KeyboardInterrupt as error:
        came = visit.arrived if host is None else host.arrived()
        add_note(error, waiting_text(job, handshake, "was interrupted while it waited", came))
        raise
