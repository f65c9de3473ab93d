"""Sizes of a language model's cache, and the names of its one component and of no checkpoint."""

RANDOM = "random"
"""The checkpoint that is no file: tiny random weights."""
COMPONENT = "model"
CONTEXT = 2048
"""Tokens of a model that names no longest context, and the least that memory is made room for."""
PAGE_TOKENS = 32
SPARE_TOKENS = 64
GROWTH = 4
"""A cache in one piece that is full grows by a quarter and some tokens more."""
