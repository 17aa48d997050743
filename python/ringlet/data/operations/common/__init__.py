"""Code shared by several operations: calls of user functions, inner datasets, caches, padding."""
