"""The cost model of collectives on a topology."""
