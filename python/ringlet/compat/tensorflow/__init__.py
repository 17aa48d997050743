"""Implementation of ``ringlet.compat.tf``: tensors, and datasets, variables and strategies of tensors."""
