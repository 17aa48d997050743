"""The version of Ringlet. Reading it from the metadata of the installation would take 15 ms."""

__version__ = "0.1.0"
