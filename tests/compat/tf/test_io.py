"""tf.io parses examples, which datasets of records hold, to tensors."""

from __future__ import annotations

import ringlet
from ringlet.compat import tf

FEATURES = {"x": tf.io.FixedLenFeature([2], tf.float32), "name": tf.io.FixedLenFeature([], tf.string)}


def test_examples_of_a_file_become_tensors(tmp_path):
    path = str(tmp_path / "records")
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(3):
            writer.write(ringlet.data.serialize_example({"x": [i, 0.5], "name": f"example {i}"}))
    records = tf.data.TFRecordDataset(path)
    parsed = list(records.map(lambda record: tf.io.parse_single_example(record, FEATURES)))
    assert [example["name"].numpy() for example in parsed] == [b"example 0", b"example 1", b"example 2"]
    assert list(parsed[0]) == ["name", "x"]  # TensorFlow's order
    assert parsed[2]["x"].numpy().tolist() == [2.0, 0.5]
    batch = next(iter(records.batch(3).map(lambda batch: tf.io.parse_example(batch, FEATURES))))
    assert isinstance(batch["x"], tf.Tensor)
    assert batch["x"].shape == (3, 2)
