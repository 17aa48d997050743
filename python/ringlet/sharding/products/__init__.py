"""Matrix products, contractions and einsum of sharded arrays."""
