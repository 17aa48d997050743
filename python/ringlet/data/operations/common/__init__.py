"""Code shared by several operations: calling user functions, inner datasets, caches, padding."""
