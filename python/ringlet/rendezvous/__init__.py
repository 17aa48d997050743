"""Rendezvous: connects processes that are started separately."""
