"""Notes below exceptions."""

from __future__ import annotations

from ringlet.errors.exception_notes import add_note


def test_a_note_is_added_once():
    error = KeyError("x")
    add_note(error, "note")
    add_note(error, "note")
    assert error.__notes__ == ["note"]
