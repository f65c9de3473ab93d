"""Pocket, the embedded model: a small world seen from above, walked by keys, recoloured by prompts.

`simulator.py` is the truth, in numpy; `codec.py` turns pictures into latents; `world.py` predicts
the next frame's latents; `text_encoder.py` reads prompts; `checkpoint.py` loads all three;
`kernel.py` is the loop that the runtime drives. `training/` makes the weights.
"""
