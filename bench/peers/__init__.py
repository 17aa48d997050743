"""Programs that answer questions, ringlet's peers and its own processes; each runs by its path in an environment.

They import nothing of the other benchmarks, and but for ``ringlet_ranks.py`` nothing of ringlet: what they share is in
``peer.py``, which needs only NumPy.
"""
