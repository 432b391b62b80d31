"""What makes arithmetic exact: limits, exponents, index arithmetic, Philox, the checks on subnormal numbers."""
