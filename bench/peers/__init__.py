"""Programs of ringlet's peers and of its own processes, which answer questions; each is run by path in an environment.

They import neither the other benchmarks nor, except ``ringlet_ranks.py``, ringlet; common code is in ``peer.py``, which
requires only NumPy.
"""
