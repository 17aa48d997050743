"""How reports read."""

from __future__ import annotations

from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.report import ArrayRecord, Operation, Report, collective_text
from ringlet.sharding.resharding.collective_record import Collective

HALVES = ArrayRecord((4, 2), "float32", Layout(2, (Cut(2, (0, 1)), WHOLE)))
PLAIN = ArrayRecord((2, 8), "float32", None)
GATHER = Collective("all-gather", (4, 2), "float32", ((0, 1),), nbytes=32, seconds=2e-6)
SHIFT = Collective("collective-permute", (1, 2), "float32", pairs=((0, 1),), nbytes=2048)


def report_of(*operations):
    report = Report()
    report.operations.extend(operations)
    return report


def test_each_operation_is_a_line_with_its_collectives_below():
    report = report_of(
        Operation("matmul", (HALVES, PLAIN), (HALVES,), (GATHER, SHIFT)),
        Operation("median", (HALVES,), (), (), is_gathered=True),
    )
    assert str(report).splitlines() == [
        "matmul: float32[4,2] {devices=[2,1]<=[2]}, float32[2,8] -> float32[4,2] {devices=[2,1]<=[2]}",
        "  all-gather float32[4,2] in 1 group of 2: 32 B, 2 us",
        "  collective-permute float32[1,2] 0->1: 2 KiB",
        "median (gathered): float32[4,2] {devices=[2,1]<=[2]} -> no array",
        "2 operations, 2.03 KiB sent in 1 all-gather, 1 collective-permute, predicted 2 us",
    ]
    assert repr(report) == f"<Report: {str(report).splitlines()[-1]}>"


def test_a_report_counts_collectives_bytes_and_gathers():
    gathered = Operation("median", (HALVES,), (), (GATHER,), is_gathered=True)
    report = report_of(gathered, Operation("f", (), (HALVES,), (GATHER, SHIFT)))
    assert report.counts == {"all-gather": 2, "collective-permute": 1}
    assert (report.nbytes, report.seconds) == (32 + 32 + 2048, 4e-6)
    assert report.gathers == [gathered]


def test_an_empty_report_says_so():
    assert str(report_of()) == "0 operations, nothing sent"
    assert report_of().seconds is None


def test_a_line_shows_few_messages_and_groups_of_several_sizes():
    many = Collective("collective-permute", (1,), "int8", pairs=tuple((i, i + 1) for i in range(20)), nbytes=20)
    assert collective_text(many).endswith("7->8 ...: 20 B")
    uneven = Collective("all-reduce", (), "int8", groups=((0, 1), (2,), (3, 4)), nbytes=4)
    assert collective_text(uneven) == "all-reduce int8[] in 3 groups of 1 or 2: 4 B"


def test_notebooks_show_a_table_with_a_row_for_each_operation():
    html = report_of(Operation("a<b", (HALVES,), (HALVES,), (GATHER,)))._repr_html_()
    assert html.count("<tr>") == 2
    assert "a&lt;b" in html
    assert "32 B" in html
