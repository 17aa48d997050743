"""``tf.train``: checkpoints and cluster specifications."""

from __future__ import annotations

from ringlet.compat.tensorflow.absent import absent_getter
from ringlet.module_names import list_public
from ringlet.train import Checkpoint, CheckpointManager, CheckpointOptions, ClusterSpec, latest_checkpoint

__all__ = ["Checkpoint", "CheckpointManager", "CheckpointOptions", "ClusterSpec", "latest_checkpoint"]

__getattr__ = absent_getter("tf.train", __all__)
__dir__ = list_public(__name__)
