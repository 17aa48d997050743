from __future__ import annotations

import itertools
import math

import pytest

from ringlet.sharding.products.product_order import product_order


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
