"""Matrix products: the view algebra, exact routes, the native kernel, and the checks on all of them."""
