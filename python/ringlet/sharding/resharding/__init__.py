"""Resharding: plans, transfers and device memory."""
