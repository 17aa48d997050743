"""Errors about files and their contents."""

from __future__ import annotations


class NotFoundError(FileNotFoundError):
    """A file or another named object does not exist (``tf.errors.NotFoundError``).

    Notes
    -----
    Usual causes: a relative path in another working directory, a pattern without matches, or a file that only one
    of several machines has.

    Examples
    --------
    >>> import ringlet
    >>> next(iter(ringlet.data.TextLineDataset("no-such-file")))
    Traceback (most recent call last):
    ringlet.errors.NotFoundError: no-such-file; No such file or directory
    """


class DataLossError(OSError):
    """A file is damaged: its checksum fails, or it is truncated (``tf.errors.DataLossError``).

    Attributes
    ----------
    file : str
        Name of the file.
    offset : int
        Position of the damage in the decompressed file, in bytes.

    Notes
    -----
    Usual causes: a file that is still being written, an interrupted copy, or the wrong compression type. Copy or
    write the file again; records before the damage are intact.

    Examples
    --------
    >>> try:
    ...     raise DataLossError("corrupted record at 17 in train-0", "train-0", 17)
    ... except OSError as error:
    ...     error.file, error.offset
    ('train-0', 17)
    """

    def __init__(self, message: str, file: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset


class CheckpointCorruptError(ValueError):
    """A file is not a checkpoint, or is truncated or damaged. No value was restored from it.

    Attributes
    ----------
    file : str
        Name of the file.
    offset : int
        Position of the damage in the file, in bytes.

    Notes
    -----
    Usual causes: the file belongs to another program, or a copy was interrupted. An interrupted save is not a cause,
    because a checkpoint is replaced only once the new checkpoint is complete. Restore an older checkpoint, from the
    attribute `checkpoints` of the CheckpointManager.

    Examples
    --------
    >>> try:
    ...     raise CheckpointCorruptError("ckpt-3.safetensors ends after 512 bytes", "ckpt-3.safetensors", 512)
    ... except ValueError as error:
    ...     error.file, error.offset
    ('ckpt-3.safetensors', 512)
    """

    def __init__(self, message: str, file: str = "", offset: int = 0) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
