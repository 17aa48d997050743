"""Parts that several operations share: calls of user functions, inner datasets, caches, padding."""
