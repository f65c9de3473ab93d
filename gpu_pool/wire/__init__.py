"""What the server and a worker share: messages, connections, shared memory, heartbeat, options."""
