"""The commands of `traingov`, one module each."""
