"""Oasis-500M: a world of blocks, played with keys and mouse; one frame a chunk.

Start with `network/transformer.py` (one call), `sampler.py` (the steps), then `kernel.py` (the
loop). Source: the published architecture and sampling; the code is our own.
"""
