"""traingov: the service. Thin I/O around the pure decisions of traingov_policies."""
