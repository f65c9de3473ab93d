"""The running session: its context, commands, interruption, events of the pool, and the store."""
