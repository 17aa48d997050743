"""Implementation of ``ringlet.compat.tf``: tensors, and the datasets, variables and strategies that use them."""
