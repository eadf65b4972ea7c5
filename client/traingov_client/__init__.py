"""What a training script imports. Standard library only, Python 3.6+."""
