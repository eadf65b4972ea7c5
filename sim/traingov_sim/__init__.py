"""The virtual Jetson: figures of it are simulated, never measured on a board."""
