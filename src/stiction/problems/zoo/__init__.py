"""Problems with names: families made from a seed, textbook examples, published data."""
