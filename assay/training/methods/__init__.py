"""What methods compute that keep something from round to round: fragments, lags, and momentum between ranks."""
