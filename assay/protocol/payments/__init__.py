"""How users of a model pay for it: vouchers, and the books of the contract that redeems them."""
