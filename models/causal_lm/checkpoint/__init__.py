"""Checkpoints of language models: what a folder holds, how it is loaded, and its LoRAs."""
