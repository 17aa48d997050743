"""Rendezvous: how processes that start one by one find each other and connect."""
