"""Helpers for programs that run as several processes: printing, progress, logging and downloads by one process."""
