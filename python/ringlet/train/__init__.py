"""Checkpoints, checkpoint managers and cluster specifications (``tf.train``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.module_names import list_public, load_on_use

if TYPE_CHECKING:
    from ringlet.cluster.cluster_spec import ClusterSpec as ClusterSpec
    from ringlet.train.checkpoint import Checkpoint as Checkpoint
    from ringlet.train.checkpoint_manager import CheckpointManager as CheckpointManager
    from ringlet.train.checkpoint_options import CheckpointOptions as CheckpointOptions
    from ringlet.train.latest import latest_checkpoint as latest_checkpoint
    from ringlet.train.load_status import CheckpointLoadStatus as CheckpointLoadStatus
    from ringlet.train.load_status import InitializationOnlyStatus as InitializationOnlyStatus
    from ringlet.train.resume_training import resume as resume
    from ringlet.train.termination import protect_loader_process as protect_loader_process

# Public name -> module below ringlet.train that defines it.
_PUBLIC = {
    "Checkpoint": "checkpoint",
    "CheckpointLoadStatus": "load_status",
    "CheckpointManager": "checkpoint_manager",
    "CheckpointOptions": "checkpoint_options",
    "ClusterSpec": ".cluster.cluster_spec",
    "InitializationOnlyStatus": "load_status",
    "latest_checkpoint": "latest",
    "protect_loader_process": "termination",
    "resume": "resume_training",
}
__all__ = list(_PUBLIC)

__getattr__ = load_on_use(__name__, _PUBLIC)
__dir__ = list_public(__name__)
