"""What goes wrong with files and their contents."""

from __future__ import annotations

__all__ = [
    "CheckpointCorruptError",
    "DataLossError",
    "NotFoundError",
]


class NotFoundError(FileNotFoundError):
    """A file, or something else that was named, is not there (``tf.errors.NotFoundError``).

    Examples
    --------
    >>> import ringlet
    >>> next(iter(ringlet.data.TextLineDataset("no-such-file")))
    Traceback (most recent call last):
    ringlet.errors.NotFoundError: no-such-file; No such file or directory
    """


class DataLossError(OSError):
    """A file is damaged: a checksum does not fit, or it ends too early (``tf.errors.DataLossError``).

    Attributes
    ----------
    file : str
        Name of the file.
    offset : int
        Where in it the damage was seen: bytes from its beginning, once decompressed.

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
    """A file is no checkpoint, or not the one that was written: it was cut off, or some of its bytes have changed.

    Nothing was restored from it.

    Attributes
    ----------
    file : str
        Which file.
    offset : int
        Where in it, in bytes from its start, the part begins that is not what was written.

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
