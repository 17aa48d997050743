"""Device assignment: which core runs each replica."""
