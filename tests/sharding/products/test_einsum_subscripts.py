from __future__ import annotations

import pytest

from ringlet.sharding.products.einsum_subscripts import labels_of, spelled


@pytest.mark.parametrize(
    ("text", "ndims", "labels"),
    [
        ("ij,jk", (2, 2), ("ij", "jk", "ik")),
        ("ba", (2,), ("ba", "ab")),
        ("ii", (2,), ("ii", "")),
        ("ij->ji", (2,), ("ij", "ji")),
        ("Ab,b", (2, 1), ("Ab", "b", "A")),
        (",i", (0, 1), ("", "i", "i")),
        ("...i,i", (3, 1), ((2, 1, "i"), "i", (2, 1))),
        ("i...,...->...i", (2, 2), (("i", 1), (2, 1), (2, 1, "i"))),
        ("...,...", (1, 0), ((1,), (), (1,))),
        ("...ij->ij", (2,), ("ij", "ij")),
        ("i->...", (1,), ("i", "")),
    ],
)
def test_each_dimension_has_a_label(text, ndims, labels):
    assert labels_of(text, ndims) == tuple(map(tuple, labels))


@pytest.mark.parametrize(
    ("text", "ndims"),
    [
        ("ij", (1,)),
        ("i", (2,)),
        ("ij,jk", (2,)),
        ("ij->ik", (2,)),
        ("ij->ii", (2,)),
        ("...i->i", (2,)),
        ("i.j", (2,)),
        ("i1", (2,)),
        ("i......", (3,)),
        ("i->i->i", (1,)),
    ],
)
def test_text_that_makes_no_sense_has_none(text, ndims):
    assert labels_of(text, ndims) is None


def test_lists_of_numbers_are_spelled_in_letters():
    assert spelled([1.5, [0, 26], 2.5, [51]]) == ("Aa,z", [1.5, 2.5])
    assert spelled([1.5, [..., 1], [1, ...]]) == ("...B->B...", [1.5])
    with pytest.raises(ValueError, match="numbers from 0 to 51"):
        spelled([1.5, [52]])
