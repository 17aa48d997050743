"""NumPy functions of sharded arrays."""
