"""The virtual Jetson: figures of it are simulated, never measured on a board.

``surfaces`` say what a training step costs; ``board`` is the physics in passed-in time; ``kernel`` the files that the
board shows; ``machine`` runs it all in real time as a process; ``demo`` governs real training on it; ``gpu`` is what a
training script imports.
"""
