"""Operations of datasets, one per module: the node, its streams, and the method of `Dataset`."""
