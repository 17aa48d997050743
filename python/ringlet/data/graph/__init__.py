"""The graph of dataset operations, the elements, and the streams that produce them."""
