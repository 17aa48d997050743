"""ClusterDef: a cluster as TensorFlow's protocol buffer message, encoded and decoded without protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["ClusterDef", "JobDef", "field_of_bytes", "field_of_number"]

# Wire types of protocol buffers: the three lowest bits of a field's tag.
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_BITS_64 = 2**64 - 1


@dataclass(frozen=True)
class JobDef:
    """One job of a `ClusterDef`.

    Attributes
    ----------
    name : str
        Of the job.
    tasks : mapping of int to str
        Address of each task.
    """

    name: str = ""
    tasks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterDef:
    """A cluster as a message (``tf.train.ClusterDef``), with TensorFlow's encoding.

    Attributes
    ----------
    job : tuple of JobDef
        The jobs, sorted by name if created by `ClusterSpec`.

    Examples
    --------
    >>> message = ClusterDef((JobDef("ps", {0: "p:1"}),))
    >>> message.SerializeToString().hex()
    '0a0d0a027073120708001203703a31'
    >>> ClusterDef.FromString(message.SerializeToString()) == message
    True
    """

    job: tuple[JobDef, ...] = ()

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:  # noqa: N802, ARG002, RUF100 - protobuf's
        """Return the encoded message, deterministically, with the tasks of each job in descending order.

        Parameters
        ----------
        deterministic : bool, optional
            Ignored.

        Returns
        -------
        bytes
        """
        return b"".join(field_of_bytes(1, _job_bytes(job)) for job in self.job)

    @classmethod
    def FromString(cls, data: bytes) -> ClusterDef:  # noqa: N802 - the name that protocol buffers give it
        """Parse an encoded message.

        Parameters
        ----------
        data : bytes
            Result of `SerializeToString` of this class or of TensorFlow's.

        Returns
        -------
        ClusterDef

        Raises
        ------
        ValueError
            If the bytes are not a ClusterDef.
        """
        try:
            return cls(tuple(_read_job(content) for number, content in _fields(data) if number == 1))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{len(data)} bytes are not a ClusterDef: {error}. Pass the result of SerializeToString()"
            ) from None


def _job_bytes(job: JobDef) -> bytes:
    tasks = b"".join(
        field_of_bytes(2, field_of_number(1, index) + field_of_bytes(2, address.encode()))
        for index, address in sorted(job.tasks.items(), reverse=True)  # as TensorFlow writes them
    )
    return (field_of_bytes(1, job.name.encode()) if job.name else b"") + tasks


def field_of_bytes(number: int, content: bytes) -> bytes:
    """Encode a field that is a string or a message."""
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def field_of_number(number: int, content: int) -> bytes:
    """Encode a field that is an integer."""
    return _varint(number << 3 | _VARINT) + _varint(content)


def _varint(number: int) -> bytes:
    """Encode an integer of at most 64 bits: seven bits in each byte, the lowest first."""
    data = bytearray()
    number &= _BITS_64
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def _read_job(data: bytes | int) -> JobDef:
    name, tasks = "", {}
    for number, content in _fields(data):
        if number == 1:
            name = _text(content)
        elif number == 2:
            entry = dict(_fields(content))
            tasks[_signed(entry.get(1, 0))] = _text(entry.get(2, b""))
    return JobDef(name, tasks)


def _signed(content: bytes | int) -> int:
    if isinstance(content, bytes):
        raise TypeError("a text in place of a number")
    return content - 2**64 if content >= 2**63 else content


def _text(content: bytes | int) -> str:
    if isinstance(content, int):
        raise TypeError("a number in place of a text")
    return content.decode()


def _fields(data: bytes | int) -> Iterator[tuple[int, bytes | int]]:
    """Yield number and content of each field of a message."""
    if isinstance(data, int):
        raise TypeError("a number in place of a message")
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind, content = tag & 7, b""
        if kind == _VARINT:
            content, at = _read_varint(data, at)  # type: ignore[assignment]
        else:
            size, at = _read_varint(data, at) if kind == _LENGTH else ({_FIXED64: 8, _FIXED32: 4}[kind], at)
            content, at = data[at : at + size], at + size
            if at > len(data):
                raise ValueError("it ends within a field")
        yield tag >> 3, content


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at
        if shift >= 64:
            raise ValueError("a number of more than 64 bits")
