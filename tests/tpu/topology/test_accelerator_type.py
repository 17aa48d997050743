"""Names of slices: every spelling, every published shape, and what is said of names that there are not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu import GENERATIONS, AcceleratorType
from ringlet.tpu.topology.accelerator_type import shapes_by_chips

# Generation: the number in a name -> chips along each axis, as published.
PUBLISHED = {
    "v2": "8 2x2, 32 4x4, 128 8x8, 256 8x16, 512 16x16",
    "v3": "8 2x2, 32 4x4, 64 4x8, 128 8x8, 256 8x16, 512 16x16, 1024 16x32, 2048 32x32",
    "v4": "8 2x2x1, 16 2x2x2, 32 2x2x4, 64 2x4x4, 128 4x4x4, 256 4x4x8, 384 4x4x12, 512 4x8x8, 1024 8x8x8, "
    "1536 8x8x12, 2048 8x8x16, 4096 8x16x16, 8192 16x16x16",
    "v5p": "8 2x2x1, 16 2x2x2, 32 2x2x4, 64 2x4x4, 128 4x4x4, 256 4x4x8, 384 4x4x12, 512 4x8x8, 640 4x4x20, "
    "768 4x8x12, 1024 8x8x8, 1152 4x12x12, 1536 8x8x12, 2048 8x8x16, 2304 8x12x12, 3072 8x12x16, 3456 12x12x12, "
    "4096 8x16x16, 4608 12x12x16, 6144 12x16x16, 8192 16x16x16, 12288 16x16x24, 17920 16x20x28",
    "v5litepod": "1 1x1, 4 2x2, 8 2x4, 16 4x4, 32 4x8, 64 8x8, 128 8x16, 256 16x16",
    "v6e": "1 1x1, 4 2x2, 8 2x4, 16 4x4, 32 4x8, 64 8x8, 128 8x16, 256 16x16",
    "tpu7x": "2 1x1x1, 8 2x2x1, 16 2x2x2, 32 2x2x4, 64 2x4x4, 128 4x4x4, 18432 16x24x24",
}  # fmt: skip
ROWS = [(prefix, *row.split()) for prefix, rows in PUBLISHED.items() for row in rows.split(", ")]


@pytest.mark.parametrize(("prefix", "number", "shape"), ROWS)
def test_a_published_name_has_the_published_shape(prefix, number, shape):
    x, y, z = [*map(int, shape.split("x")), 1][:3]
    kind = AcceleratorType.parse(f"{prefix}-{number}")
    assert kind.shape == (x, y, z)
    assert kind.name == f"{prefix}-{number}"
    assert AcceleratorType.parse(f"{prefix}-{shape}") == kind


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("v5e-16", "v5litepod-16"),
        ("v5e:8x16", "v5litepod-128"),
        ("v5:4x4x4", "v5p-128"),
        ("v4:2x2x4", "v4-32"),
        ("v6e:16x16", "v6e-256"),
        ("v7x-8", "tpu7x-8"),
        ("tpu7x-2x2x1", "tpu7x-8"),
        ("TPU7x-128", "tpu7x-128"),
        (" V4-32\n", "v4-32"),
        ("ct5lp-hightpu-1t", "v5litepod-1"),
        ("ct5lp-hightpu-4t", "v5litepod-4"),
        ("ct5lp-hightpu-8t", "v5litepod-8"),
        ("ct6e-standard-8t", "v6e-8"),
        ("tpu7x-standard-4t", "tpu7x-8"),
        # shapes beside the published ones
        ("v5litepod-4x2", "v5litepod-4x2"),
        ("v5e-4x4x1", "v5litepod-16"),
        ("v4-4x8x16", "v4-4x8x16"),
        ("v4-8x4x4", "v4-8x4x4"),
        ("v4-4x2x2", "v4-4x2x2"),
        ("v5p-4x4x44", "v5p-1408"),
    ],
)
def test_every_spelling_is_read(spelling, name):
    assert AcceleratorType.parse(spelling).name == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("v4-48", "counts cores, 2 to a chip, and no v4 slice has 48.*'v4-32', 'v4-64'"),
        ("v4-33", "no v4 slice has 33.*'v4-32', 'v4-64'"),
        ("v4-16384", "no v4 slice has 16384.*'v4-8192'"),
        ("v4-0", "no v4 slice has 0.*'v4-8'"),
        ("v5litepod-12", "counts chips, and no v5e slice has 12.*'v5litepod-8', 'v5litepod-16'"),
        ("v5e-5x5", "1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16.*'v5litepod-4x4'"),
        ("v5e-16x8", "v5e has the shapes.*'v5litepod-8x16'"),
        ("v5p-8x4x4", "none larger than the next.*'v5p-4x4x8'"),
        ("v5p-16x20x32", "at most 8960 chips"),
        ("v4-4x4", "v4 slices have 3 axes, such as 4x4x8"),
        ("v4-1x2x2", "v4 has the shapes"),
        ("v4-0x4x4", "v4 has the shapes"),
        ("v5e-2x2x2", "v5e slices have 2 axes, such as 8x16"),
        ("ct5lp-hightpu-3t", "have 1, 4, 8 chips.*'ct5lp-hightpu-4t'"),
        ("v5litepod", "v5litepod- must be followed by a number of chips, or by a shape such as 8x16.*'v5litepod-"),
        ("v9-32", "names begin with v2, v3, v4, v5litepod.*'v"),
        ("v44-16", "names begin with.*names: 'v4-16'"),
        ("v3_8", "names begin with.*names: 'v3-8'"),
        ("v5p128", "names begin with.*names: 'v5p-128'"),
        ("v5litepod16", "names begin with.*names: 'v5litepod-16'"),
        ("TPU v4 32", "names begin with.*names: 'v4-32'"),
        ("v5-litepod-17", "v5- must be followed by a number.*names: 'v5litepod-16', 'v5litepod-32'"),
        ("ct5p-hightpu-4t", "names begin with.*names: 'ct5lp-hightpu-4t'"),
        ("v4-16x", "v4- must be followed by a number.*names: 'v4-16'"),
        ("", "names begin with"),
        ("v4-٣٢", "v4- must be followed by a number"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_the_nearest_ones(name, words):
    with pytest.raises(ValueError, match=f"(?s)unknown accelerator type.*{words}"):
        AcceleratorType.parse(name)


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError, match="'v4-32', got 32"):
        AcceleratorType.parse(32)


KINDS = [(generation, shape) for generation in GENERATIONS.values() for shape in shapes_by_chips(generation).values()]


@given(kind=st.sampled_from(KINDS))
def test_a_name_means_the_slice_that_has_it(kind):
    generation, shape = kind
    named = AcceleratorType.of(generation, shape)
    assert AcceleratorType.parse(named.name) == named
    number = int(named.name.rsplit("-", 1)[1])
    assert number == math.prod(shape) * (generation.cores_per_chip if generation.number_counts == "cores" else 1)


@given(name=st.text(max_size=20))
def test_any_text_is_a_name_or_refused(name):
    try:
        kind = AcceleratorType.parse(name)
    except ValueError as error:
        said = str(error)
    else:
        said = f"The nearest names: '{kind.name}'"
    assert "The nearest names: '" in said


def test_shapes_that_no_slice_has_have_no_name():
    assert AcceleratorType.of(GENERATIONS["v4"], (1, 1, 1)) is None
