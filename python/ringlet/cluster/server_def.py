"""ServerDef: the cluster and task of a server, as TensorFlow's protocol buffer message."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringlet.cluster.cluster_def import ClusterDef
from ringlet.protobuf_wire import bytes_field, number_field

__all__ = ["ServerDef"]


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
