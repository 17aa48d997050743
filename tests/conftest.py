"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import settings

# A deadline per example would fail on a machine that is busy; pytest-timeout bounds every test instead.
settings.register_profile("default", deadline=None, max_examples=50)
settings.register_profile("nightly", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("default")
