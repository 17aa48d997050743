"""Pictures of tiles: as SVG, and in characters."""
