"""The sub-commands of ``ringlet``, one file each, and the facts that two of them show."""
