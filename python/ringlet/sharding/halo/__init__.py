"""Operations on the neighbourhood of each element: convolution, pooling, stencils."""
