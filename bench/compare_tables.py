"""The tables of a comparison, for a terminal and for a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench import report
from bench.compare_results import CONTROLLER, CPP, LIMIT, PRIVATE, PROCESSES, PYTHON, Measured, ratio
from bench.harness import format_bytes

__all__ = ["Section", "as_markdown", "as_text", "disturbance_section", "panels", "ratio_sections", "time_sections"]


@dataclass(frozen=True)
class Section:
    """A titled table, with introductory text.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : sequence of sequence of str
    said : str
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    said: str = ""


def as_text(sections: Sequence[Section]) -> str:
    """Write sections for a terminal."""
    parts = []
    for section in sections:
        table = [report.format_table(section.columns, section.rows)] if section.rows else []
        parts.append("\n".join([f"{section.title}:", *filter(None, [section.said]), *table]))
    return "\n\n".join(parts)


def as_markdown(sections: Sequence[Section]) -> str:
    """Write sections as headings and tables of a document.

    Examples
    --------
    >>> print(as_markdown([Section("Times", ["who", "8 B"], [["limit", "60 ns"]])]))
    ## Times
    <BLANKLINE>
    | who | 8 B |
    | --- | ---: |
    | limit | 60 ns |
    """
    parts = []
    for section in sections:
        lines = [f"## {section.title}"]
        if section.said:
            lines += ["", section.said]
        if section.rows:
            rule = ["---", *["---:"] * (len(section.columns) - 1)]
            lines += ["", *(f"| {' | '.join(cells)} |" for cells in (section.columns, rule, *section.rows))]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def time_sections(measured: Sequence[Measured]) -> Iterator[Section]:
    """Yield a table of medians for each number of ranks, collective and variant, with a column for each size."""
    for group, members in _groups(measured):
        who = list(dict.fromkeys(one.who for one in members))
        sizes = _sizes(members)
        found = {(one.who, one.task.size_bytes): one for one in members}
        rows = [[name, *(_time(found.get((name, size))) for size in sizes)] for name in who]
        yield Section(f"Time of {group}", ["who", *map(format_bytes, sizes)], rows)


def ratio_sections(measured: Sequence[Measured]) -> Iterator[Section]:
    """Yield a table for each of these groups: ringlet / limit, and each peer / ringlet, within rounds."""
    for group, members in _groups(measured):
        sizes = _sizes(members)
        found = {(one.who, one.task.size_bytes): one for one in members}
        rows = [
            [f"{over} / {under}", *(_ratio(found.get((over, size)), found.get((under, size))) for size in sizes)]
            for over, under in _pairs(members)
        ]
        if rows:
            yield Section(f"Ratios of {group}", ["ratio", *map(format_bytes, sizes)], rows)


def _pairs(members: Sequence[Measured]) -> Iterator[tuple[str, str]]:
    """Yield the pairs to divide; one thread with all buffers is compared with NumPy only, which does the same job."""
    families = {one.who: one.family for one in members}
    for ours in (PYTHON, CPP, PROCESSES, PRIVATE, CONTROLLER):
        if ours in families:
            if LIMIT in families:
                yield ours, LIMIT
            rivals = ((who, family) for who, family in families.items() if family not in ("ringlet", "limit"))
            yield from ((who, ours) for who, family in rivals if ours != CONTROLLER or family == "NumPy")


def disturbance_section(measured: Sequence[Measured]) -> Section:
    """Return the fraction of the cores' time used by others, for each number of ranks and size."""
    shares = {(one.task.num_ranks, one.task.size_bytes): one.others for one in measured}
    counts, sizes = (sorted({key[i] for key in shares}) for i in range(2))
    rows = [
        [str(count), *(f"{shares[count, size]:.0%}" if (count, size) in shares else "" for size in sizes)]
        for count in counts
    ]
    said = (
        "Part of the cores' time that processes other than those compared took; above a few percent a row says little."
    )
    return Section("Others", ["ranks", *map(format_bytes, sizes)], rows, said)


def panels(measured: Sequence[Measured]) -> Mapping[str, report.Curves]:
    """Return one panel for each collective and variant, at the fewest ranks: time / limit over bytes.

    Every panel names all curves, in one order, though some have no points there: a colour belongs to a name.
    """
    fewest = min(one.task.num_ranks for one in measured)
    shown = [one for one in measured if one.task.num_ranks == fewest and one.seconds]
    limits = {one.task: one.median for one in shown if one.family == "limit"}
    labels = list(dict.fromkeys(map(_label, sorted(shown, key=lambda one: one.family not in ("limit", "ringlet")))))
    figures: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for one in sorted(shown, key=lambda one: one.task.size_bytes):
        title = f"{one.task.collective} {one.task.variant}, {fewest} ranks"
        curves = figures.setdefault(title, {label: [] for label in labels})
        if one.task in limits:
            curves[_label(one)].append((float(one.task.size_bytes), one.median / limits[one.task]))
    return figures


def _label(one: Measured) -> str:
    # What stands before a comma has a colour of its own.
    names = {
        PYTHON: "ringlet, Python", CPP: "ringlet, C++", CONTROLLER: "ringlet one thread, Python",
        PROCESSES: "ringlet processes, Python", PRIVATE: "ringlet processes (private), Python",
    }  # fmt: skip
    return names.get(one.who, one.who)


def _groups(measured: Sequence[Measured]) -> Iterator[tuple[str, list[Measured]]]:
    groups: dict[tuple[int, str, str], list[Measured]] = {}
    for one in measured:
        groups.setdefault((one.task.num_ranks, one.task.collective, one.task.variant), []).append(one)
    for (num_ranks, collective, variant), members in groups.items():
        yield f"{collective}, {variant}, P={num_ranks}", members


def _sizes(members: Sequence[Measured]) -> list[int]:
    return sorted({one.task.size_bytes for one in members})


def _time(one: Measured | None) -> str:
    if one is None:
        return ""
    return report.format_seconds(one.median) if one.seconds else one.failure


def _ratio(one: Measured | None, ours: Measured | None) -> str:
    if one is None or ours is None or not one.seconds or not ours.seconds:
        return ""
    value = ratio(one, ours)
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
