"""Which replicas get which colours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ringlet.tpu.drawing.colours import CATEGORIES, CATEGORY_STYLES, GRADIENT_STYLES, colour_styles, replica_colours
from ringlet.tpu.drawing.scene import INK
from ringlet.tpu.drawing.subject import subject_of
from tests.tpu.drawing.slices import assignment


def brightness(colour):
    """Relative luminance, as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def over(colour, ground, opacity):
    """A colour that lets a part of the ground through."""
    mixed = (
        round(opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(ground[i : i + 2], 16)) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def contrast(one, other):
    low, high = sorted([brightness(one), brightness(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("style", [*CATEGORY_STYLES, *GRADIENT_STYLES], ids=lambda style: style.name)
def test_words_can_be_read_on_every_colour(style, theme):
    ground = over(style.fill[theme], ("#ffffff", "#0d1117")[theme], style.opacity[theme])
    assert contrast(INK.fill[theme], ground) >= 3.9


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_gradient_gets_ever_lighter(theme):
    bright = [brightness(style.fill[theme]) for style in GRADIENT_STYLES]
    assert bright == sorted(bright)
    assert len(set(bright)) == len(bright)


def seen_without(colour, missing):
    """A colour as people see it who have no red (0), green (1) or blue (2) cones: Machado and others, 2009."""
    matrices = (
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    )
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(matrices[missing]) @ linear, 0, 1)
    return np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_replica_colours_differ_for_people_who_see_fewer_colours(missing):
    seen = [seen_without(colour, missing) for colour in CATEGORIES]
    assert min(float(np.abs(a - b).max()) for a, b in itertools.combinations(seen, 2)) > 0.08


def test_up_to_eight_replicas_have_a_colour_each():
    subject = subject_of(assignment("v5p-128", (2, 2, 2, 1), 8, megacore=True))
    assert replica_colours(subject).tolist() == list(range(8))


@pytest.mark.parametrize("shape", [(2, 2, 1, 1), (1, 4, 1, 1), (2, 1, 1, 1), (4, 4, 1, 1)])
def test_many_replicas_that_touch_have_different_colours(shape):
    drawn = assignment("v5e-256", shape, 256 // int(np.prod(shape)))
    subject = subject_of(drawn)
    colour = replica_colours(subject)[subject.replica]
    for axis in (0, 1):
        replica, shown = (np.moveaxis(grid, axis, 0) for grid in (subject.replica, colour))
        apart = replica[1:] != replica[:-1]
        assert (shown[1:] != shown[:-1])[apart].all()


def test_colours_run_from_the_first_replica_to_the_last_where_each_is_one_core():
    subject = subject_of(assignment("v5e-64", (1, 1, 1, 1), 64))
    colours = replica_colours(subject)
    assert colour_styles(subject) == GRADIENT_STYLES
    assert (np.diff(colours) >= 0).all()
    assert (colours[0], colours[-1]) == (0, len(GRADIENT_STYLES) - 1)
