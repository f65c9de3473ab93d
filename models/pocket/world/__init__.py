"""Pocket's world loops: states, units of work, and how prompts and keys act on them."""
