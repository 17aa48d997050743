"""The version. Reading it from the metadata of the installation would be slow."""

__version__ = "0.1.0"
