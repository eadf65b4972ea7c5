"""`traingov doctor`: looks at a machine and says what is well, what is not, and what to do. Writes nothing."""
