"""Reductions and scans of sharded arrays."""
