"""DIAMOND: Atari and Counter-Strike, played in a diffusion model of pixels; one frame a chunk.

Start with `network/denoiser.py` (one call), `sampler.py` (the steps), then `kernel.py` (the loop).
Source: the published architecture and sampling; the code is our own.
"""
