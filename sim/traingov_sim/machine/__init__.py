"""A virtual board as a process of its own: real time, its socket, and its tegrastats."""
