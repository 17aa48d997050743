"""Operations of datasets. Each module has the node of one operation, its streams, and the method of `Dataset`."""
