"""Recipes: a proxy data set, a model and a training loop, from which the proxy counts samples to accuracy."""
