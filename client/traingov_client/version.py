"""The version of this package, sent to the daemon in hello."""

VERSION = "0.1.0"
