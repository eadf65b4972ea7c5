"""Short runs of each kind of trouble: recorded from the twin for the replay tests, and at real time end to end."""
