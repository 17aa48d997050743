"""TPU slices: generations, coordinates, links, hosts and their environment."""
