"""Adapters for arrays of other libraries."""
