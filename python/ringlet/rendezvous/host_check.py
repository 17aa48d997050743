"""Check that processes, described by records, can form a group: they need the same user, host and namespaces."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ringlet.rendezvous.job_key import ranks_text
from ringlet.rendezvous.process_identity import ProcessIdentity


def own_record() -> dict[str, Any]:
    """Return a record that describes the calling process, and can be encoded as JSON."""
    return {"process": ProcessIdentity.of_this_process().as_record(), "user": os.geteuid()}


def different_places(records: list[dict[str, Any]]) -> str:
    """Return text that lists the ranks on each host or of each user, if these differ; otherwise an empty string."""
    identities = [ProcessIdentity.from_record(each["process"]) for each in records]
    return _different(
        identities, lambda process: (process.boot_id, process.network_namespace, process.pid_namespace), _place
    ) or _different(records, lambda each: each["user"], lambda each: f"user id {each['user']}")


def _place(process: ProcessIdentity) -> str:
    return f"host {process.host} (boot {process.boot_id[:8]}, {process.network_namespace}, {process.pid_namespace})"


def _different(items: list[Any], key: Callable[[Any], Any], name: Callable[[Any], str]) -> str:
    ranks: dict[Any, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        ranks[key(item)].append(number)
    if len(ranks) == 1:
        return ""
    return "; ".join(f"{ranks_text(numbers)} on {name(items[numbers[0]])}" for numbers in ranks.values())
