"""Matrix products: the view algebra, product variants, the native kernel, and the checks on all of them."""
