"""Tables age: is what a table says still true, and what to do where it is not (method A, "Validation")."""
