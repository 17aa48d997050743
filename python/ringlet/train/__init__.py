"""Checkpoints, checkpoint managers and cluster specifications (``tf.train``)."""

from __future__ import annotations

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.module_names import list_public
from ringlet.train.checkpoint import Checkpoint
from ringlet.train.checkpoint_manager import CheckpointManager
from ringlet.train.checkpoint_options import CheckpointOptions
from ringlet.train.latest import latest_checkpoint
from ringlet.train.load_status import CheckpointLoadStatus, InitializationOnlyStatus
from ringlet.train.resume import resume
from ringlet.train.termination import protect_loader_process

__all__ = [
    "Checkpoint",
    "CheckpointLoadStatus",
    "CheckpointManager",
    "CheckpointOptions",
    "ClusterSpec",
    "InitializationOnlyStatus",
    "latest_checkpoint",
    "protect_loader_process",
    "resume",
]

__dir__ = list_public(__name__)
