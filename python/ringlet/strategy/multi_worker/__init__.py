"""MultiWorkerMirroredStrategy: replicas of several processes."""
