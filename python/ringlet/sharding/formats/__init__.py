"""XLA's text and protocol-buffer formats for shardings."""
