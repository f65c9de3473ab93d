"""Attention backends and fused operations, each with a plain-torch reference.

A reference has the same signature as its kernel, and a parametrised test compares both. This
package imports no other package. Start with `attention.py`; `block_attention.py` is attention over
a table of cache blocks.
"""

__all__: list[str] = []
