"""What a session needs of the pool: the backend protocol, the worker channel, and receipts."""
