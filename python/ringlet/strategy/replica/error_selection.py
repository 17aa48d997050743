"""Selection and description of the failures of a run."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from ringlet.errors import CollectiveAborted


def primary_failure(failures: Mapping[int, BaseException]) -> tuple[int, BaseException]:
    """Return the failure that a run raises, with its replica.

    The order of precedence is: exceptions that end the program (``SystemExit``, ``KeyboardInterrupt``), independent
    failures, consequences of another replica's failure; ties go to the lowest replica number.
    """

    def order(item: tuple[int, BaseException]) -> tuple[bool, bool, int]:
        replica, error = item
        return isinstance(error, Exception), follows_from_abort(error), replica

    return min(failures.items(), key=order)


def follows_from_abort(error: BaseException) -> bool:
    """Return whether an exception, or one in its chain of causes and contexts, is a CollectiveAborted."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, CollectiveAborted):
            return True
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return False


def one_line(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message."""
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def other_failures(failures: Mapping[int, BaseException], raised: int) -> str:
    """Describe the independent failures of replicas other than the one whose exception is raised.

    The text continues a sentence about the raised exception, and is empty without other failures. Equal failures are
    listed once.
    """
    replicas_of: dict[str, list[int]] = {}
    for replica, error in sorted(failures.items()):
        if replica >= 0 and replica != raised and not follows_from_abort(error):
            replicas_of.setdefault(one_line(error), []).append(replica)
    same = replicas_of.pop(one_line(failures[raised]), [])
    parts = [f"; {_replicas(same)}: the same"] if same else []
    parts += [f"; {_replicas(replicas)} also failed: {text}" for text, replicas in replicas_of.items()]
    return "".join(parts)


def _replicas(numbers: list[int]) -> str:
    """Format ascending numbers as ranges: ``replicas 1-3, 5``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return f"replica{'s' if len(numbers) > 1 else ''} " + ", ".join("-".join(map(str, ends)) for ends in ranges)
