"""Operations whose results need the neighbourhood of each element: convolution, pooling, stencils."""
