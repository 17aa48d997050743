"""The program whose types lint checks runs."""

from __future__ import annotations

from tests.typed.program import main


def test_the_typed_program_runs():
    main()
