"""Where caps come from: configuration, commands, a schedule, a file, the battery. What holds is decided in policies."""
