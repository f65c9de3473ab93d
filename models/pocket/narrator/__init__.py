"""Pocket's narrator loop: when it reads the frames, when it speaks, and its units of work."""
