"""Table of docs/porting.md: each name is looked up, and its parameters are compared."""

from __future__ import annotations

import inspect

import pytest
from docs import porting

from ringlet.compat import tf

ROWS = list(porting.rows())


def test_each_row_says_what_is_there():
    # What may be found, by status: with `differs`, the name is there and something about it is not as in TensorFlow.
    allowed = {
        "same": lambda found: found == "present",
        "differs": lambda found: found != "absent",
        "absent": lambda found: found == "absent",
    }
    assert [row["symbol"] for row in ROWS if row["status"] not in allowed] == []
    looked_up = [(row["symbol"], row["status"], porting.found(row), row["signature"]) for row in ROWS]
    wrong = [entry for entry in looked_up if not allowed[entry[1]](entry[2])]
    assert not wrong, "correct these rows, and run python -m docs.porting"
    assert [row["symbol"] for row in ROWS if bool(row["words"]) == (row["status"] == "same")] == []


def test_the_document_holds_the_table_as_it_is_written_now():
    document = porting.DOCUMENT.read_text(encoding="utf-8")
    assert document == porting.with_table(document), "run python -m docs.porting"


def test_every_name_occurs_once():
    symbols = [row["symbol"] for row in ROWS]
    assert len(symbols) == len(set(symbols)) > 280


@pytest.mark.parametrize(
    ("signature", "names"),
    [
        ("()", []),
        ("(self)", []),
        ("(self, fn, args=(), kwargs=None)", ["fn", "args", "kwargs"]),
        ("(cls, mode=<Mode.A: 'A'>, size=1)", ["mode", "size"]),
        ("(self, *args, **kwargs)", []),
        ("(topology: Topology, shape: Optional[numpy.ndarray] = None) -> 'X'", ["topology", "shape"]),
    ],
)
def test_the_text_of_a_signature_is_read(signature, names):
    assert porting.parameter_names(signature) == names


def lie(symbol, signature):
    return porting.found({"symbol": symbol, "signature": signature})


def test_what_is_not_as_it_is_said_to_be_is_seen():
    assert lie("tf.distribute.NoSuchStrategy", "(self)") == "absent"
    assert lie("tf.distribute.Strategy.run", "(self, fn, arguments=())").startswith("takes fn")
    assert lie("tf.distribute.Strategy.scope", "property") != "present"
    assert lie("tf.distribute.ReduceOp", "enum: SUM='SUM', MAX='MAX'").startswith("members")
    assert lie("tf.constant", "class") == "no class"
    assert "run" in vars(inspect.getattr_static(tf.distribute, "Strategy"))
