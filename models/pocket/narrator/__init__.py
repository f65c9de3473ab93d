"""Pocket's narrator loop: when it looks, when it speaks, and its units of work."""
