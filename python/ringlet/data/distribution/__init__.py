"""Distribution of datasets to workers and replicas."""
