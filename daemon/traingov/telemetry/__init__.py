"""What the board says: tegrastats and the meaning of its rails."""
