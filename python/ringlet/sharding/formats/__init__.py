"""XLA's text and protocol-buffer formats of shardings."""
