"""The physics of a virtual board: clock, queue, power, heat and sensors. Pure: time is passed in."""
