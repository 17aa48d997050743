"""Matrix products, contractions, einsum and linear algebra of sharded arrays."""
