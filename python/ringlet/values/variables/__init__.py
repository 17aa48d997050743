"""Variables: plain, distributed, sharded, and on parameter servers."""
