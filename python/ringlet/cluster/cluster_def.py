"""ClusterDef: a cluster as TensorFlow's protocol buffer message, encoded and decoded without protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringlet.protobuf_wire import bytes_field, fields, number_field


@dataclass(frozen=True)
class JobDef:
    """One job of a `ClusterDef`.

    Attributes
    ----------
    name : str
        Name of the job.
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
        """Return the encoded message, always with the tasks of each job in descending order.

        Parameters
        ----------
        deterministic : bool, optional
            Ignored.

        Returns
        -------
        bytes
        """
        return b"".join(bytes_field(1, _job_bytes(job)) for job in self.job)

    @classmethod
    def FromString(cls, data: bytes) -> ClusterDef:  # noqa: N802 - the name that protocol buffers give it
        """Parse an encoded message.

        Parameters
        ----------
        data : bytes
            Result of `SerializeToString`, of this class or of TensorFlow's class.

        Returns
        -------
        ClusterDef

        Raises
        ------
        ValueError
            If the bytes are not a ClusterDef.
        """
        try:
            return cls(tuple(_read_job(content) for number, _, content, _ in fields(data) if number == 1))
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{len(data)} bytes are not a ClusterDef: {error}. Pass the result of SerializeToString()"
            ) from None


def _job_bytes(job: JobDef) -> bytes:
    tasks = b"".join(
        # A map entry has both fields, even if the index is 0.
        bytes_field(2, (number_field(1, index) or b"\x08\x00") + bytes_field(2, address.encode()))
        for index, address in sorted(job.tasks.items(), reverse=True)  # descending, as TensorFlow writes them
    )
    return (bytes_field(1, job.name.encode()) if job.name else b"") + tasks


def _read_job(data: bytes | int) -> JobDef:
    name, tasks = "", {}
    for number, _, content, _ in fields(_bytes(data)):
        if number == 1:
            name = _bytes(content).decode()
        elif number == 2:
            entry = {item.number: item.value for item in fields(_bytes(content))}
            tasks[_number(entry.get(1, 0))] = _bytes(entry.get(2, b"")).decode()
    return JobDef(name, tasks)


def _number(content: bytes | int) -> int:
    if isinstance(content, bytes):
        raise TypeError("found a string, expected a number")
    return content


def _bytes(content: bytes | int) -> bytes:
    if isinstance(content, int):
        raise TypeError("found a number, expected a string or a message")
    return content


@dataclass(frozen=True)
class ServerDef:
    """One server (``tf.train.ServerDef``), with TensorFlow's encoding.

    Attributes
    ----------
    cluster : ClusterDef
    job_name : str
    task_index : int
    protocol : str

    Examples
    --------
    >>> from ringlet.cluster.cluster_def import JobDef
    >>> ServerDef(ClusterDef((JobDef("ps", {0: "p:1"}),)), "ps", 0, "grpc").SerializeToString().hex()
    '0a0f0a0d0a027073120708001203703a31120270732a0467727063'
    """

    cluster: ClusterDef = field(default_factory=ClusterDef)
    job_name: str = ""
    task_index: int = 0
    protocol: str = ""

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:  # noqa: N802, ARG002, RUF100 - protobuf's
        """Return the encoded message.

        Parameters
        ----------
        deterministic : bool, optional
            Ignored.

        Returns
        -------
        bytes
        """
        return (
            (bytes_field(1, self.cluster.SerializeToString()) if self.cluster.job else b"")
            + (bytes_field(2, self.job_name.encode()) if self.job_name else b"")
            + number_field(3, self.task_index)
            + (bytes_field(5, self.protocol.encode()) if self.protocol else b"")
        )
