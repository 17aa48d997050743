"""Operations of datasets. Each module defines the node, the streams and the `Dataset` method of one operation."""
