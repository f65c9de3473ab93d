"""Pocket's world loops: their states, their units of work, and how prompts and keys act on them."""
