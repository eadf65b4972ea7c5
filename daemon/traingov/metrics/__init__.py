"""Prometheus metrics: what is counted (counts), read (collect), written as text (text) and served (server)."""
