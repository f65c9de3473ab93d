"""Pocket's networks: codec, text encoder, world model, narrator, and all four together."""
