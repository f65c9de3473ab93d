"""Causal Wan: Self-Forcing and LongLive, video made block by block from text.

Start with `network/transformer.py` (one call), `window.py` (which frames a call attends to), then
`kernel.py` (the loop). The numbers in `tests/goldens` hold it to the public models; the code is our
own.
"""
