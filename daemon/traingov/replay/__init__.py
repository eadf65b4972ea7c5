"""Replaying what was recorded through a fresh governor: whole recordings, and bare tegrastats logs."""
