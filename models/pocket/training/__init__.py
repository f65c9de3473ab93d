"""Training of pocket: `run.train` trains, `export` writes the weights file.

Data comes from the simulator while training runs. Each batch is a pure function of seed and step,
so a run that was killed and continued leads to the same weights.
"""
