"""NumPy functions for sharded arrays."""
