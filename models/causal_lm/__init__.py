"""Decoder-only language models of the transformers library, a token a unit.

Start with `kernel.py` (the loop), then `cache_pages.py` (the cache) and `sampling.py`.
"""
