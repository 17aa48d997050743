"""Pictures of tiles as SVG and text."""
