"""Strategies, which run a step function on replicas and combine the values of replicas."""
