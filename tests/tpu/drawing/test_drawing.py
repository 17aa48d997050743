"""Pictures of slices as their users ask for them."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import tpu
from ringlet.tpu import Collective, DeviceAssignment, DeviceOrderMode, Topology, drawing, simulate
from tests.tpu.drawing.slices import SVG, assignment, classes, degraded, parsed, some_loads, topology, words
from tests.tpu.meshes import mesh

SIXTEEN = ("v5litepod-16", (1, 1, 1, 1), 16)

# Four chips, both cores each; a cube; a pod of 256; one of 8,960; one with two devices on each of 1,024 chips.
SIZES = [
    pytest.param(lambda: assignment("v3-8", (1, 1, 1, 2), 4), id="v3-8"),
    pytest.param(lambda: assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True), id="v5p-128"),
    pytest.param(lambda: assignment("v5e-256", (2, 2, 1, 1), 64), id="v5e-256"),
    pytest.param(lambda: assignment("v5p-16x20x28", (4, 4, 4, 1), 140, megacore=True), id="v5p-16x20x28"),
    pytest.param(lambda: topology("v3-2048"), id="v3-2048"),
    pytest.param(degraded, id="degraded"),
]


@pytest.mark.parametrize("make", SIZES)
def test_a_picture_is_well_formed_and_says_what_it_shows(make):
    picture = drawing.svg(make())
    root = parsed(picture)
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text in words(picture)
    assert root.find(f"{SVG}desc").text
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"


def test_a_picture_does_not_depend_on_the_seed_of_hashes():
    program = (
        "import hashlib; from tests.tpu.drawing.slices import assignment; from ringlet.tpu import drawing;"
        "a = assignment('v5p-128', (2, 2, 2, 1), 8, megacore=True);"
        "print(hashlib.sha256((drawing.svg(a) + drawing.text(a)).encode()).hexdigest())"
    )
    drawn = assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True)
    expected = hashlib.sha256((drawing.svg(drawn) + drawing.text(drawn)).encode()).hexdigest()
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {sys.path[0]!r}); {program}"]
    for seed in ("1", "2"):
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=True, env={"PYTHONHASHSEED": seed}
        )
        assert done.stdout.strip() == expected


@pytest.mark.parametrize("make", SIZES)
def test_all_of_a_picture_lies_on_its_card(make):
    root = parsed(drawing.svg(make()))
    width, height = float(root.get("width")), float(root.get("height"))
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= float(rect.get("x")) <= float(rect.get("x")) + float(rect.get("width")) <= width
        assert 0 <= float(rect.get("y")) <= float(rect.get("y")) + float(rect.get("height")) <= height
    for word in root.iter(f"{SVG}text"):
        assert 0 <= float(word.get("x")) <= width
        assert 0 <= float(word.get("y")) <= height


def test_a_pod_of_8960_chips_is_a_small_picture_made_in_little_time():
    pod = assignment("v5p-16x20x28", (1, 1, 1, 1), 8960, DeviceOrderMode.MESH, megacore=True)
    loads = some_loads(pod)
    started = time.process_time()
    sizes = [len(drawing.svg(pod)), len(drawing.svg(pod, loads=loads)), len(drawing.text(pod))]
    assert time.process_time() - started < 5
    assert max(sizes) < 500_000
    assert sizes[2] < 10_000


def test_more_chips_than_any_pod_has_are_shown_in_part_and_the_picture_says_so():
    cube = mesh(28, 28, 28)
    picture = drawing.svg(cube)
    assert len(picture) < 1_000_000
    assert "3 of 28 slices are not shown; slices=[...] chooses them" in words(picture)
    wide = Topology(mesh_shape=(150, 150, 1, 1), device_coordinates=np.zeros((1, 1, 4), int))
    picture = drawing.svg(wide)
    assert len(picture) < 2_000_000
    assert "left out: all chips but those with x below 141 and y below 141" in words(picture)
    assert "left out: all chips but those with x below 80 and y below 60" in drawing.text(wide)


def test_slices_are_drawn_as_asked_for_and_larger():
    pod = assignment("v5p-16x20x28", (4, 4, 4, 1), 140, megacore=True)
    picture = drawing.svg(pod, slices=[3, 27])
    assert [text for text in words(picture) if text.startswith("z =")] == ["z = 3", "z = 27"]
    assert "outline: the chips of one host" in words(picture)
    assert "26 of 28 slices are not shown; slices=[...] chooses them" in words(picture)
    # Two rows: one fits of an eighty characters wide drawing in which chips have labels.
    lines = drawing.text(pod, slices=[3, 27], width=120).splitlines()
    assert [line.strip() for line in lines if line.startswith("z =")] == ["z = 3", "z = 27"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"slices": [4]}, "slice z = 4 does not exist: pass z coordinates from 0 to 3"),
        ({"slices": []}, "slices is empty: pass z coordinates from 0 to 3"),
        ({"rings": "core"}, "rings must be one of 'auto', 'cores', 'replicas', 'none', got 'core'"),
        ({"loads": [1.0, 2.0]}, "loads has shape (2,), but the topology has 56 directed links: pass one number"),
        ({"loads": np.full(56, np.nan)}, "loads[0] is nan: loads must be bytes, finite and not negative"),
        ({"loads": -np.arange(56)}, "loads[1] is -1.0: loads must be bytes, finite and not negative"),
    ],
)
@pytest.mark.parametrize("draw", [drawing.svg, drawing.html, drawing.text])
def test_what_cannot_be_drawn_is_refused_with_what_can(draw, options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        draw(assignment("v4-32", (2, 2, 1, 1), 4, megacore=True), **options)


def test_pictures_have_a_least_width():
    with pytest.raises(ValueError, match="at least 200 pixels, got width=100"):
        drawing.svg(topology("v3-8"), width=100)
    with pytest.raises(ValueError, match="at least 20 characters, got width=19"):
        drawing.text(topology("v3-8"), width=19)


def test_a_page_has_the_picture_and_the_words_of_the_topology():
    drawn = assignment(*SIXTEEN)
    page = drawing.html(drawn)
    assert drawing.svg(drawn) in page
    assert "the number in v5litepod-16 counts these" in page
    parsed(page)


def test_notebooks_show_topologies_and_assignments_as_pictures():
    for drawn in (topology("v5litepod-16"), assignment(*SIXTEEN)):
        assert drawn._repr_svg_() == drawing.svg(drawn)
        assert drawn._repr_html_() == drawing.html(drawn)


def test_costs_show_the_loads_of_links(capsys):
    drawn = assignment(*SIXTEEN)
    for cost in (drawn.cost("all_reduce", 2**30), simulate(drawn, Collective("all_reduce", 2**30))):
        assert drawing.svg(cost) == cost._repr_svg_() == drawing.svg(drawn, loads=cost.link_bytes)
        assert drawing.html(cost) == drawing.html(drawn, loads=cost.link_bytes)
        assert drawing.text(cost) == drawing.text(drawn, loads=cost.link_bytes)
        assert drawing.text(cost, loads=0 * cost.link_bytes) == drawing.text(drawn, loads=0 * cost.link_bytes)
        assert cost._repr_html_() == drawing.html(drawn, loads=cost.link_bytes)
        cost.draw(width=80)
        assert capsys.readouterr().out == drawing.text(drawn, loads=cost.link_bytes) + "\n"


def test_a_style_sheet_touches_only_pictures_of_this_kind():
    sheet = parsed(drawing.svg(assignment(*SIXTEEN))).find(f"{SVG}style").text
    inside = sheet.removeprefix("@media (prefers-color-scheme:dark){\n").removesuffix("\n}")
    assert all(rule.startswith(".ringlet-tpu .") for rule in inside.splitlines())


def test_a_picture_asks_for_nothing_from_elsewhere():
    for drawn in (assignment(*SIXTEEN), degraded()):
        picture = drawing.svg(drawn, loads=None)
        assert not re.search(r"href|url\(|<script|@import|@font-face", picture)


def test_colours_are_those_of_both_light_and_dark_pages():
    root = parsed(drawing.svg(assignment("v4-32", (2, 2, 1, 1), 4, megacore=True)))
    styled = set(re.findall(r"\.ringlet-tpu \.([\w-]+)\{", root.find(f"{SVG}style").text))
    used = {name for name in classes(drawing.svg(assignment("v4-32", (2, 2, 1, 1), 4, megacore=True))) if name}
    assert used - {"ringlet-tpu"} == styled


shapes = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 2))


@st.composite
def slices_with_gaps(draw: st.DrawFn) -> DeviceAssignment | Topology:
    """Slices of any shape and wrap, in which any devices may be missing, with any of the rest assigned."""
    shape = draw(shapes)
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=-1)
    order = draw(st.permutations(range(len(cells))))[: draw(st.integers(1, len(cells)))]
    tasks = draw(st.sampled_from([n for n in (1, 2, 3, 4) if len(order) % n == 0]))
    wrap = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    slice_ = Topology(mesh_shape=shape, device_coordinates=cells[order].reshape(tasks, -1, 4), wrap=wrap)
    replicas, cores = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    if replicas * cores == 0 or replicas * cores > len(order):
        return slice_
    return DeviceAssignment(slice_, cells[order][: replicas * cores].reshape(replicas, cores, 4))


@given(drawn=slices_with_gaps(), rings=st.sampled_from(["auto", "cores", "replicas", "none"]), loads=st.booleans())
def test_every_slice_can_be_drawn(drawn, rings, loads):
    given_loads = some_loads(drawn) if loads else None
    parsed(drawing.svg(drawn, rings=rings, loads=given_loads))
    for width in (20, 80):
        lines = drawing.text(drawn, rings=rings, loads=given_loads, width=width).splitlines()
        assert max(map(len, lines)) <= width


def test_the_module_is_an_attribute_of_tpu_without_a_further_import():
    program = "from ringlet import tpu; print(tpu.drawing.svg(tpu.Topology.from_accelerator_type('v4-8'))[:5])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "<svg \n"
    assert "drawing" in dir(tpu)
