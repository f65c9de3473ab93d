"""A session as a program uses it: the interface, events as a stream, and media upload."""
