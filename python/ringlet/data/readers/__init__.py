"""Datasets of files: text, records, tables and arrays."""
