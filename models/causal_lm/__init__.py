"""Decoder-only language models of the transformers library, a token a unit.

Start with `kernel.py` (the loop), then `pages.py` (the cache) and `sampling.py`.
"""
