"""Subcommands of ``traingov-sim evaluate``: a module here that holds a click command ``command`` is one."""
