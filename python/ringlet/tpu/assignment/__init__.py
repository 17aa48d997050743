"""Device assignment: which cores run each replica."""
