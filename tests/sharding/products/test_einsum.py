from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding import Sharding, explain, shard
from ringlet.sharding.products.einsum import labels_of, product_order, text_and_operands
from tests.sharding.sweep import assemble, outcome, placements, tiled


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
    assert text_and_operands([1.5, [0, 26], 2.5, [51]]) == ("Aa,z", [1.5, 2.5])
    assert text_and_operands([1.5, [..., 1], [1, ...]]) == ("...B->B...", [1.5])
    with pytest.raises(ValueError, match="numbers from 0 to 51"):
        text_and_operands([1.5, [52]])


def cost(pairs, labels, sizes, wanted):
    """How many multiplications an order takes, and what is left."""
    terms, total = [set(term) for term in labels], 0
    for i, j in pairs:
        both = terms[i] | terms[j]
        total += math.prod(sizes[label] for label in both)
        rest = [term for n, term in enumerate(terms) if n not in (i, j)]
        terms = [*rest, both & set(wanted).union(*rest)]
    return total, terms


def orders(count):
    """Every order of as many arrays."""
    if count < 2:
        return [()]
    pairs = itertools.combinations(range(count), 2)
    return [(pair, *later) for pair in pairs for later in orders(count - 1)]


@pytest.mark.parametrize(
    ("labels", "wanted"), [("ab bc cd", "ad"), ("ab bc c", "a"), ("ab ab bc cd", ""), ("abc cd db ea", "e")]
)
def test_no_order_takes_fewer_products(labels, wanted):
    terms, sizes = labels.split(), {"a": 7, "b": 2, "c": 9, "d": 3, "e": 5}
    found = product_order([tuple(t) for t in terms], [tuple(sizes[label] for label in t) for t in terms], tuple(wanted))
    least = min(cost(pairs, terms, sizes, wanted)[0] for pairs in orders(len(terms)))
    assert cost(found, terms, sizes, wanted) == (least, [set(wanted)])


def test_a_long_chain_is_ordered_pair_by_pair():
    labels = [(n, n + 1) for n in range(30)]
    pairs = product_order(labels, [(2, 2)] * 30, (0, 30))
    assert len(pairs) == 29


def test_one_array_has_no_order():
    assert product_order([("i",)], [(3,)], ()) == ()


SIZES = {"a": 2, "b": 5, "c": 3, "d": 4}


@st.composite
def einsums(draw):
    """Subscripts, repeated ones among them, and a placement on two by two devices for each operand."""
    terms = draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    known = sorted(set("".join(terms)))
    result = "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])
    layouts = [draw(st.sampled_from(placements("2x2", len(term)))) for term in terms]
    return terms, f"{','.join(terms)}->{result}", layouts


@given(case=einsums(), seed=st.integers(0, 9))
def test_any_einsum_of_any_placement_is_that_of_the_whole(case, seed):
    terms, text, layouts = case
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-9, 9, [SIZES[label] for label in term]) for term in terms]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = np.einsum(text, *(tiled(x, layout) for x, layout in zip(arrays, layouts, strict=True)))
    np.testing.assert_array_equal(assemble(found), np.einsum(text, *arrays))


@pytest.mark.parametrize("optimize", [False, True, "optimal", ["einsum_path", (0, 1)]])
def test_the_order_may_be_asked_for_as_of_numpy(optimize):
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    found = np.einsum("ij,jk", shard(a, Sharding.tiled((2, 1))), b, optimize=optimize)
    np.testing.assert_array_equal(np.asarray(found), a @ b)


def test_the_result_is_written_to_out():
    x, out = shard(np.arange(6.0).reshape(2, 3), Sharding.tiled((2, 1))), np.empty(3)
    assert np.einsum("ij->j", x, out=out) is out
    np.testing.assert_array_equal(out, [3, 5, 7])


def test_the_dtype_may_be_asked_for():
    x = shard(np.full((2, 3), 100, np.int8), Sharding.tiled((2, 1)))
    assert int(np.einsum("ij->", x, dtype="int64")) == 600
    assert np.einsum("ij->ji", x, dtype="int64").dtype == "int8"  # as NumPy has it
    with pytest.raises(TypeError):
        np.einsum("ij->", shard(np.ones((2, 3)), Sharding.tiled((2, 1))), dtype="int64")


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ij", [(2,)]),
        ("ij->ik", [(2, 2)]),
        ("ii", [(1, 3)]),
        ("ij,jk", [(2, 3), (2, 3)]),
        ("i?", [(2, 2)]),
    ],
)
def test_what_numpy_refuses_is_refused_in_its_words(text, shapes):
    expected = outcome(lambda: np.einsum(text, *map(np.ones, shapes)))
    arrays = [shard(np.ones(shape), Sharding.replicated(2)) for shape in shapes]
    found = outcome(lambda: np.einsum(text, *arrays))
    assert (type(found), str(found)) == (ValueError, str(expected))


def test_attention_over_sharded_heads_sends_nothing():
    heads = Sharding.tiled((1, 4, 1, 1))
    q, k = (shard(np.random.default_rng(n).normal(size=(2, 4, 5, 3)), heads) for n in range(2))
    with explain() as report:
        scores = np.einsum("bhqd,bhkd->bhqk", q, k)
    assert (report.nbytes, len(report.operations), scores.sharding) == (0, 1, heads)


def test_a_chain_of_matrices_is_multiplied_from_the_cheaper_end():
    arrays = [np.ones((4, 6)), np.ones((6, 5)), np.ones(5)]
    x = shard(arrays[0], Sharding.tiled((2, 1)))
    np.testing.assert_array_equal(np.asarray(np.linalg.multi_dot([x, *arrays[1:]])), np.full(4, 30.0))
    for wrong in ([x], [x, np.ones((5, 5))], [x, np.ones(6), np.ones(6)]):
        found = outcome(lambda wrong=wrong: np.linalg.multi_dot(wrong))
        assert str(found) == str(outcome(lambda wrong=wrong: np.linalg.multi_dot([np.asarray(each) for each in wrong])))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_infinite_numbers_are_multiplied_before_they_are_summed(count):
    a, b = np.array([1.0, -1.0, 3.0]), np.array([np.inf, 2.0])
    x = shard(a, Sharding.tiled((count,)))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.einsum("i,j->j", x, b), np.einsum("i,j->j", a, b))
        assert np.isnan(np.einsum("i,j->", x, b))
