"""What the guard knows besides the window mean: which readings to believe, and what holds the clock back."""
