"""One run as people read it: in a terminal, or as a page that needs nothing but a browser."""
