"""The graph of dataset operations, its elements, and the streams that produce the elements."""
