"""The sub-commands of ``ringlet``, one file each, and the modules that they need."""
