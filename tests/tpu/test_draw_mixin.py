"""Slices and assignments show themselves wherever they are asked to."""

from __future__ import annotations

import pytest

from ringlet.tpu import DeviceAssignment, Topology
from ringlet.tpu.drawing import svg

TOPOLOGY = Topology.from_accelerator_type("v3-8")
SUBJECTS = [TOPOLOGY, DeviceAssignment.build(TOPOLOGY, [1, 1, 1, 2], num_replicas=4)]


@pytest.mark.parametrize("subject", SUBJECTS, ids=["topology", "assignment"])
def test_a_notebook_is_given_a_picture(subject):
    assert subject._repr_svg_().startswith("<svg")
    assert "<svg" in subject._repr_html_()


@pytest.mark.parametrize("subject", SUBJECTS, ids=["topology", "assignment"])
def test_a_terminal_is_given_characters(subject, capsys):
    subject.draw(width=60, color=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("subject", SUBJECTS, ids=["topology", "assignment"])
def test_a_figure_is_drawn_with_matplotlib(subject):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    assert subject.plot().figure is not None


def test_a_picture_is_written_to_the_named_file(tmp_path):
    TOPOLOGY.draw(str(tmp_path / "slice.svg"), width=600)
    assert (tmp_path / "slice.svg").read_text(encoding="utf-8") == svg(TOPOLOGY, width=600)
