"""The strategy API, and the strategies of one process."""
