"""Scenes as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.drawing.scene import INK, LINK, Boxes, Curves, Discs, Hint, Lines, Scene, Words
from ringlet.tpu.drawing.svg_writer import number, scene_to_svg

SVG = "{http://www.w3.org/2000/svg}"


def written(*items, title="t", description="d"):
    return ElementTree.fromstring(scene_to_svg(Scene(100, 50, title, description, list(items))))


@given(text=st.text())
def test_any_text_is_written_so_that_it_is_xml(text):
    root = written(Words(INK, [(1, 2, text)]), Hint([((0, 0, 1, 1), text)]), title=text, description=text)
    assert root.tag == f"{SVG}svg"


def test_markup_in_a_text_stays_text():
    evil = "</text><script>alert(1)</script>&\"'"
    root = written(Words(INK, [(1, 2, evil)]), title=evil)
    assert root.find(f"{SVG}title").text == evil
    assert root.find(f".//{SVG}text").text == evil
    assert root.find(f".//{SVG}script") is None


def test_shapes_become_elements_with_their_numbers():
    root = written(
        Boxes(LINK, [(1, 2, 3, 4)]),
        Boxes(LINK, [(1, 2, 3, 4)], radius=2),
        Lines(LINK, [[(0, 0), (5, 5.25)], [(1, 1), (2, 2)]]),
        Curves(LINK, [((0, 0), (1, 2), (3, 4))]),
        Discs(INK, [(7, 8)], 1.5),
    )
    paths = [path.get("d") for path in root.iter(f"{SVG}path")]
    assert paths == ["m1 2h3v4h-3z", "M0 0L5 5.2M1 1L2 2", "M0 0Q1 2 3 4"]
    assert root.findall(f".//{SVG}rect")[-1].get("rx") == "2"
    assert root.find(f".//{SVG}circle").get("r") == "1.5"


def test_who_strips_the_style_sheet_sees_the_colours_of_light_pages():
    line = written(Lines(LINK, [[(0, 0), (1, 1)]])).find(f"{SVG}path")
    assert (line.get("stroke"), line.get("fill")) == (LINK.stroke[0], "none")


@given(value=st.floats(-1e6, 1e6))
def test_numbers_are_short_and_right_to_a_tenth(value):
    assert abs(float(number(value)) - value) <= 0.05 + 1e-9
    assert "e" not in number(value)
    assert not number(value).endswith((".", ".0"))
