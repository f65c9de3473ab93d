"""Pocket, the embedded model: a small world seen from above, walked by keys, recoloured by prompts.

`simulator/` is the true world, in numpy; `network/` holds the networks, `checkpoint.py` loads;
`world/` and `narrator/` are the loops that the runtime drives; `narration/` defines facts,
questions and sentences; `training/` makes the weights. `README.md` says more.
"""
