"""The clients of a session: one attachment each, its outbox, and who is attached."""
