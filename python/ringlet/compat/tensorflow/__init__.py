"""What ``ringlet.compat.tf`` is made of: tensors, and datasets, variables and strategies of tensors."""
