"""Operations of datasets, one per module: a function, usually a `Dataset` method, and its node and streams, if any."""
