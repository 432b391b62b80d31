"""Payment by voucher, off the chain: signing, checking, keeping on disk, redeeming. docs/adr/0063-vouchers.md"""
