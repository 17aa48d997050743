"""Formats of shardings in XLA, and conversions to and from arrays of JAX and PyTorch."""
