"""Sizes of a language model's cache, and the names of its one component and of random weights."""

RANDOM = "random"
"""The checkpoint name for tiny random weights."""
COMPONENT = "model"
CONTEXT = 2048
"""Tokens for a model that names no longest context; lack of memory never makes it shorter."""
PAGE_TOKENS = 32
SPARE_TOKENS = 64
GROWTH = 4
"""A full working cache grows by a quarter and by `SPARE_TOKENS`."""
