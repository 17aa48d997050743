"""Benchmarks of ringlet: one file per question, each run as ``python -m bench.<name>`` from the root of the tree.

``bench/README.md`` defines every column and every limit.
"""
