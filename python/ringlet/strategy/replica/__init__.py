"""Replica threads: contexts, step execution, failures."""
