"""Training with MultiWorkerMirroredStrategy, and a checkpoint in a folder; prints a digest of the weights."""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

import ringlet

strategy = ringlet.MultiWorkerMirroredStrategy()
rng = np.random.default_rng(1)
images, labels = rng.random((256, 64), np.float32), rng.integers(0, 10, 256)
with strategy.scope():
    weights = ringlet.Variable(np.zeros((64, 10), np.float32))
dataset = ringlet.data.Dataset.from_tensor_slices((images, labels)).batch(64).repeat(3)


def step(batch):
    x, y = batch
    logits = x @ weights.numpy()
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    chances[np.arange(len(y)), y] -= 1
    gradient = (x.T @ chances).astype(np.float32) / 64
    total = ringlet.get_replica_context().all_reduce(ringlet.ReduceOp.SUM, gradient)
    weights.assign_sub(0.1 * total)
    return np.float32(-np.log(np.abs(chances[np.arange(len(y)), y]) + 1e-6).sum())


for batch in strategy.experimental_distribute_dataset(dataset):
    losses = strategy.run(step, args=(batch,))
    loss = strategy.reduce(ringlet.ReduceOp.SUM, losses, axis=None)
checkpoint = ringlet.train.Checkpoint(weights=weights)
saved = weights.numpy().copy()
path = checkpoint.save(f"{sys.argv[1]}/checkpoint")
weights.assign(np.zeros_like(saved))
checkpoint.restore(path)
assert (weights.numpy() == saved).all()
digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
print(json.dumps({"digest": digest, "loss": float(loss), "replicas": strategy.num_replicas_in_sync}), flush=True)
