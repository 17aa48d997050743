"""Processes of one machine: children that end with their parent, and what is sent to them and comes back."""
