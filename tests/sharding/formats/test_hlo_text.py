"""Texts of shardings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import ShardingError
from ringlet.sharding import Sharding
from tests.sharding.shardings import shardings


@given(shardings())
def test_what_is_written_is_read_back(sharding):
    text = str(sharding)
    found = Sharding.parse(text)
    assert str(found) == text
    assert found == sharding or sharding.kind not in ("tiled", "maximal")  # which say how many devices there are


@given(shardings(), st.data())
def test_a_text_with_a_letter_changed_is_read_or_refused_with_its_place(sharding, data):
    text = str(sharding)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.text("{}[]<=T(), 0123dlmr", max_size=2)) + text[place + 1 :]
    try:
        found = Sharding.parse(changed)
    except ShardingError as error:
        found_at, is_right = int(re.search(r"at position (\d+): ", str(error))[1]), False
    else:
        found_at, is_right = 0, Sharding.parse(str(found)) == found
    assert is_right or 0 <= found_at <= len(changed)


@given(st.text() | st.text("{}[]<=T(), 01devicsmaxl"))
def test_any_other_text_is_refused(text):
    if not text.replace(" ", "").startswith("{}"):
        with pytest.raises(ShardingError, match="text of a sharding is invalid"):
            Sharding.parse(text)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "expected '{', which begins a sharding, but the text ends"),
        ("replicated", 0, "expected '{', which begins a sharding"),
        ("{replicated", 11, "expected '}', which ends a sharding, but the text ends"),
        ("{replicated manual}", 12, "expected '}', which ends a sharding"),
        ("{replicated}}", 12, "expected the end of the text"),
        ("{maximal}", 8, "expected 'device='"),
        ("{maximal device=-1}", 16, "expected a number"),
        ("{device=3}", 1, "expected 'replicated'"),
        ("{devices=[1,1]0}", 10, "a tiling has one device: write {replicated}"),
        ("{devices=[0]<=[0]}", 10, r"the numbers of tiles are \[0\]: write 1"),
        ("{devices=[2,2]0,1,2}", 19, "the list ends after 3 devices, expected 4"),
        ("{devices=[2]0,1,2}", 16, "the list has more devices than the 2 tiles"),
        ("{devices=[2]1,1}", 14, "device 1 is listed twice"),
        ("{devices=[2,2]<=[5]}", 17, "the grid has 5 devices for 4 tiles"),
        ("{devices=[2,2]<=[4]T(0)}", 19, "expected '}'"),
        ("{devices=[2,2]<=[2,2]}", 21, "expected 'T\\(', the order of the grid's axes"),
        ("{devices=[2,2]<=[2,2]T(0,0)}", 23, r"the axes are \[0, 0\]: expected each of 0 to 1 once"),
        ("{devices=[2,2", 13, "expected ',' or ']', but the text ends"),
        ("{devices=[2]0,1 last_tile_dims={maximal}}", 32, "expected 'manual' or 'unreduced' or 'replicated'"),
        ("{devices=[2]0,1 last_tile_dims={manual,}}", 39, "expected 'manual'"),
        ("{devices=[2]0,1 last_tile_dims={manual,manual}}", 39, "the list has more groups than the 1 dimensions"),
        ("{devices=[999999,999999]<=[8]}", 10, "a tiling has 999998000001 tiles: the maximum is 1048576"),
        ("{devices=[2]0,99999999999999999999}", 14, "a number has 20 digits"),
        ("{{{replicated}}}", 1, "a tuple contains a tuple"),
        ("{{replicated},}", 14, "expected '{'"),
        ("{/* {replicated}", 1, "expected 'replicated'"),
        ("{replicated shard_as1}", 12, "expected '}'"),
        ("{replicated shard_like x}", 23, "expected a number"),
        ("{{replicated} {replicated}}", 14, "expected ',' or '}'"),
        ('{replicated metadata={op_name="}"', 33, "expected '}', but the text ends"),
    ],
)
def test_a_refusal_shows_the_place(text, position, reason):
    with pytest.raises(ShardingError, match=f"at position {position}: {reason}") as caught:
        Sharding.parse(text)
    *_, shown, mark = str(caught.value).splitlines()
    assert shown == f"  {text}"
    assert mark == " " * (position + 2) + "^"


def test_of_a_long_text_the_part_around_the_place_is_shown():
    text = f"{{devices=[999]{','.join(map(str, range(998)))}}}"
    with pytest.raises(ShardingError) as caught:
        Sharding.parse(text)
    assert all(len(line) < 130 for line in str(caught.value).splitlines())


def test_a_device_that_there_is_not_is_refused():
    with pytest.raises(ShardingError, match="position 16: device 4 does not exist: there are 4 devices"):
        Sharding.parse("{maximal device=4}", 4)


def test_spaces_may_stand_between_words():
    assert Sharding.parse(" { devices = [ 2 , 1 ] 1 , 0 } ".replace("s =", "s=")) == Sharding.tiled((2, 1), [1, 0])


def test_comments_may_stand_between_words():
    text = "{{devices=/* a * / */[2]<=[2]}, // two\n{/**/manual}} // and no more"
    assert str(Sharding.parse(text)) == "{{devices=[2]<=[2]}, {manual}}"


def test_elements_of_a_long_tuple_are_numbered():
    text = "{{manual}, {manual}, {manual}, {manual}, {manual}, /*index=5*/{manual}, {manual}}"
    assert str(Sharding.of_tuple([Sharding.manual()] * 7)) == text
    assert len(Sharding.parse(text).elements) == 7


def test_what_says_nothing_about_places_is_passed_over():
    assert Sharding.parse('{devices=[2]<=[2] metadata={op_name="a}\\"{"}}') == Sharding.tiled((2,))


@pytest.mark.parametrize(
    "text", ["{replicated shard_as 5}", "{devices=[2]1,0 shard_like 0}", "{maximal device=1 shard_as 1}"]
)
def test_tensors_that_are_to_be_cut_alike_stay_a_group(text):
    found = Sharding.parse(text.replace(" shard", ' metadata={op_name="a"} shard'))
    assert str(found) == text
    assert found != Sharding.parse(text.split(" shard")[0] + "}")


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError, match="the text of a sharding must be a str, got 3 of type int"):
        Sharding.parse(3)


def test_only_texts_of_tilings_say_how_many_devices_there_are():
    assert Sharding.parse("{replicated}").num_devices is None
    assert Sharding.parse("{replicated}", 4) == Sharding.replicated(4)
    assert Sharding.parse("{devices=[4]<=[4]}").num_devices == 4
