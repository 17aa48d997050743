"""How the processes of a job find each other."""

from __future__ import annotations

from ringlet.cluster.deadline import Deadline
from ringlet.cluster.job import MOST_PROCESSES, Job
from ringlet.cluster.process_identity import ProcessIdentity
from ringlet.cluster.rendezvous import Meeting, Peer, meet

__all__ = ["MOST_PROCESSES", "Deadline", "Job", "Meeting", "Peer", "ProcessIdentity", "meet"]
