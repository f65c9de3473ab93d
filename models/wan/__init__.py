"""Causal Wan: Self-Forcing and LongLive, video made block by block from text.

Start with `transformer.py` (one call), `window.py` (what a call sees), then `kernel.py` (the loop).
Facts of the public models are followed by the numbers in `tests/goldens`; the code is our own.
"""
