import json

import pytest

from bench import report


@pytest.mark.parametrize(
    # seconds, text
    ("seconds", "text"),
    [
        (1.234e-9, "1.23 ns"),
        (9.996e-7, "1.00 us"),
        (2.5e-5, "25.0 us"),
        (0.1234, "123 ms"),
        (1.0, "1.00 s"),
        (-2e-3, "-2.00 ms"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(seconds, text):
    assert report.format_seconds(seconds) == text


def test_columns_are_as_wide_as_their_widest_cell():
    table = report.format_table(["a", "b"], [["first", 1], ["x", 1000]])
    assert table.splitlines() == ["a         b", "-----  ----", "first     1", "x      1000"]


def test_json_is_written_with_the_folders_it_needs(tmp_path):
    path = tmp_path / "new" / "run.json"
    report.write_json(path, {"seconds": [1.5]})
    assert json.loads(path.read_text()) == {"seconds": [1.5]}


def test_a_figure_is_a_picture_file(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "run.png"
    curves = {"limit": [(8, 1e-6), (1024, 2e-6)], "auto, C++": [(8, 2e-6)], "auto, Python": [(8, 2e-6), (1024, 3e-6)]}
    report.write_figure(path, dict.fromkeys("abc", curves), columns=2, y_label="seconds", title="x")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_named_with_its_cure(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ringlet\[plot\]'"):
        report.write_figure(tmp_path / "run.png", {"out": {}}, columns=1, y_label="", title="")
