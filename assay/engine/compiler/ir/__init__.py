"""The intermediate form between PyTorch's graph and a program: values, strided readings, elementwise chains."""
