"""What the policies are worth: comparisons as rows of numbers, each saying what kind of figure it is."""
