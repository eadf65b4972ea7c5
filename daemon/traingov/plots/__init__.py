"""Pictures, with matplotlib (extra ``plots``): loaded by the commands that draw, never by the service."""
