"""TPUStrategy: replicas of a TPU slice."""
