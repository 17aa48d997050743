"""Settings of the libraries that these tests use."""

from __future__ import annotations

import os

# Read as jax starts: so that arrays can be on several devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
# Read as scikit-learn starts.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
