"""Training of pocket: `run.train` trains, `export` ships, `evaluate` measures.

Data comes from the simulator while training runs, each batch a pure function of seed and step, so
that a run that was killed goes on to the same weights.
"""
