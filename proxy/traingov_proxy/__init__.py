"""Server side: samples to accuracy per batch size, by real training on a proxy data set."""
