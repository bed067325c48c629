"""Tables and samples: validation, encoding, cells, and sums over rows."""
