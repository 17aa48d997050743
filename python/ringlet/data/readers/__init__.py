"""Datasets of what files hold: text, records, tables and arrays; one kind of file a module, and what they share."""
