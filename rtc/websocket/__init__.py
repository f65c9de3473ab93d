"""WebSocket: the endpoint, its handshake, and one attachment's conversation."""
