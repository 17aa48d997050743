"""Shardings, meshes and layouts: which device holds which tile."""
