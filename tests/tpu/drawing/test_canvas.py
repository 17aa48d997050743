"""Lines of characters that meet and cross."""

from __future__ import annotations

from ringlet.tpu.drawing.canvas import ASCII, Canvas


def shown(canvas):
    return list(canvas.lines())


def test_boxes_that_touch_share_a_line():
    canvas = Canvas(7, 3)
    canvas.box(0, 0, 3, 2)
    canvas.box(3, 0, 6, 2)
    assert shown(canvas) == ["┌──┬──┐", "│  │  │", "└──┴──┘"]


def test_a_corner_that_four_boxes_share_is_a_cross():
    canvas = Canvas(5, 5)
    for x in (0, 2):
        for y in (0, 2):
            canvas.box(x, y, x + 2, y + 2)
    assert shown(canvas) == ["┌─┬─┐", "│ │ │", "├─┼─┤", "│ │ │", "└─┴─┘"]


def test_thick_lines_cross_thin_ones_and_spare_letters():
    canvas = Canvas(5, 3)
    canvas.box(0, 0, 4, 2)
    canvas.write(2, 1, "a")
    for x in range(5):
        canvas.thick_across(x, 1)
    canvas.thick_down(2, 0)
    canvas.thick_down(2, 1)
    assert shown(canvas) == ["┌─╂─┐", "┿━a━┿", "└───┘"]


def test_lines_end_without_spaces():
    canvas = Canvas(9, 2)
    canvas.write(0, 0, "ab   ")
    assert shown(canvas) == ["ab", ""]


def test_colours_are_written_once_for_letters_of_one_colour():
    canvas = Canvas(6, 1)
    canvas.write(0, 0, "12", colour=0)
    canvas.write(3, 0, "3", colour=1)
    assert list(canvas.lines({0: "<red>", 1: "<blue>"})) == ["<red>12\033[0m <blue>3\033[0m"]
    assert shown(canvas) == ["12 3"]


def test_every_letter_that_is_no_ascii_has_a_stand_in():
    drawn = "─│┌┐└┘├┤┬┴┼╴╶╵╷━┃┿╂┥┝↗↙↕·".translate(ASCII)
    assert drawn.isascii()
    assert "?" not in drawn
