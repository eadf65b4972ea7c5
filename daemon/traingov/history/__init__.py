"""What the service remembers of earlier jobs."""
