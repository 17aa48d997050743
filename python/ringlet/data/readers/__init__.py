"""Datasets of files: text, records, tables and arrays, with one format per module."""
