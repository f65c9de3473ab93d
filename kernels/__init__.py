"""How model work runs fast: attention backends and fused operations, each with a plain reference.

A kernel has a plain-torch reference of the same signature beside it, and one parametrised test
against that. This package imports no other. Start with `attention.py`;
`block_attention.py` is the same over a table of cache blocks.
"""

__all__: list[str] = []
