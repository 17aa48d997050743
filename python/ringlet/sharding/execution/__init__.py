"""Execution of operations tile by tile."""
