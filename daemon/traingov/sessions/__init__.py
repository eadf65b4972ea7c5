"""The socket: JSON-RPC sessions of training jobs and of administrators."""
