"""Divergence: the first call that differs between the ranks of a group."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from ringlet.observe.recorder import Operation, Process

_MOST_CALLS = 4


@dataclass(frozen=True)
class Divergence:
    """A call that differs between the ranks of a group; `calls` has each variant, its ranks and a source location.

    If only one of several processes has calls of the group, `within` names that process.
    """

    group: str
    sequence: int
    calls: list[tuple[str, list[int], str]]
    within: str = ""

    def __str__(self) -> str:
        common, *others = sorted(self.calls, key=lambda call: -len(call[1]))
        has_majority = all(len(ranks) < len(common[1]) for _, ranks, _ in others)
        named = sorted(others if has_majority else self.calls, key=lambda call: call[1])
        words = [f"{rank_ranges(call[1])} made {_with_place(*call)}" for call in named[:_MOST_CALLS]]
        words += [f"{len(named) - _MOST_CALLS} more calls differ"] if len(named) > _MOST_CALLS else []
        words += [f"the others {_with_place(*common)}"] if has_majority else []
        is_hidden = len({text for text, _, _ in self.calls}) == 1
        cause = " (the difference is in arguments that are not recorded, such as names and pairs)" if is_hidden else ""
        within = f"within {self.within}, " if self.within else ""
        return f"{within}the ranks' calls differ first at call {self.sequence}: {', '.join(words)}{cause}"


def _with_place(text: str, _ranks: list[int], place: str) -> str:
    return f"{text} {place}".rstrip()


def calls_by_group(processes: Iterable[Process]) -> dict[str, dict[int, dict[int, Operation]]]:
    """Return all operations by group, call number and rank, with the groups in order of their first recorded calls."""
    operations = (operation for process in processes for thread in process.threads for operation in thread)
    groups: dict[str, dict[int, dict[int, Operation]]] = {}
    for operation in sorted(operations, key=lambda operation: operation.began):
        calls = groups.setdefault(operation.group, {})
        calls.setdefault(operation.sequence, {})[operation.rank] = operation
    return groups


def first_divergence(processes: Iterable[Process]) -> Divergence | None:
    """Return the earliest call that differs between the ranks of a group, or None."""
    processes = list(processes)
    found = [
        (min(operation.began for operation in ranks.values()), group, sequence, ranks)
        for group, calls in calls_by_group(processes).items()
        for sequence, ranks in calls.items()
        if not _match(list(ranks.values()))
    ]
    if not found:
        return None
    _, group, sequence, ranks = min(found, key=lambda entry: entry[:3])
    same: dict[tuple[str, tuple[int, int]], list[int]] = {}
    for rank, operation in sorted(ranks.items()):
        same.setdefault((operation.text, operation.fingerprints), []).append(rank)
    calls = [(text, members, ranks[members[0]].place) for (text, _), members in same.items()]
    makers = [each.source for each in processes if any(o.group == group for thread in each.threads for o in thread)]
    return Divergence(group, sequence, calls, makers[0] if len(makers) == 1 < len(processes) else "")


def last_wait(processes: Iterable[Process]) -> str | None:
    """Return a line about a group's last call that only some of its ranks made and still wait in, or None."""
    for calls in reversed(calls_by_group(processes).values()):
        made = calls[max(calls)]
        last = made[min(made)]
        missing = set(range(last.num_ranks)) - set(made)
        if missing and all(operation.arrived is None for operation in made.values()):
            where = _with_place(last.text, [], last.place)
            return f"{rank_ranges(list(made))} waited for {rank_ranges(list(missing))} in {where}"
    return None


def _match(operations: list[Operation]) -> bool:
    # A receiving rank may pass no array; shape and dtype are then those of the root.
    buffers = {operation.fingerprints[1] for operation in operations if operation.has_buffers}
    return len({operation.fingerprints[0] for operation in operations}) == 1 and len(buffers) <= 1


def rank_ranges(ranks: Iterable[int]) -> str:
    """Format ranks, three or more consecutive ones as a range: ``ranks 0, 2 to 5``."""
    texts = number_ranges(ranks)
    return f"rank{'' if len(texts) == 1 and texts[0].isdigit() else 's'} {', '.join(texts)}"


def number_ranges(numbers: Iterable[int]) -> list[str]:
    """Format numbers in ascending order, three or more consecutive ones as a range: ``["0", "2 to 5"]``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run) for run in runs]
    return list(itertools.chain.from_iterable(texts))
