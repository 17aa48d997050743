"""The errors of messages between processes whose group has failed."""

from __future__ import annotations

import dataclasses

import pytest

from ringlet.collectives.process_messages import ProcessInbox
from ringlet.errors import CollectiveAborted, WorkerLostError
from ringlet.ipc.mailbox import Mailbox
from ringlet.rendezvous.process_identity import ProcessIdentity


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("rank 1 (pid 812 on node7) was killed by SIGKILL (signal 9). Every rank raises this.", WorkerLostError),
        ("ranks 1, 3 to 5 (pid 812 on node7) was killed by SIGKILL (signal 9). All raise this.", WorkerLostError),
        ("rank 1 raised KeyError: rank 1 (pid 812 on node7) was killed.", CollectiveAborted),
        ("rank 1 raised KeyError: pid 812 on node7", CollectiveAborted),
    ],
)
def test_a_failed_group_is_a_lost_rank_or_was_aborted(text, kind):
    mine = ProcessIdentity.of_this_process()
    other = dataclasses.replace(mine, pid=812, host="node7")
    mailbox = Mailbox()
    inbox = ProcessInbox(mailbox, 0, ["", ""], {0: mailbox}, [mine, other], seconds=5)
    error = inbox.failure(text)
    inbox.close()
    assert type(error) is kind
    assert str(error) == text
    if kind is WorkerLostError:
        assert (error.rank, error.host, error.pid) == (1, "node7", 812)
        assert error.reason == "was killed by SIGKILL (signal 9)"
