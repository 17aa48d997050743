"""The operations of a dataset, one a file: the node, its streams, and the method of `Dataset` that makes it."""
