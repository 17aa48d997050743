"""Programs that make peers of ringlet answer questions; each runs by its path in an environment of its own.

They import nothing of ringlet or of the other benchmarks: what they share is in ``peer.py``, which needs only NumPy.
"""
