"""Saved iterator state and cached elements."""
