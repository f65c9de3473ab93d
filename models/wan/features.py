"""What the Wan VAE remembers between two latent frames: plain values, known without its library."""

from torch import Tensor

FeatureCache = tuple[Tensor | str | None, ...]
"""The last inputs of each causal convolution; `"Rep"` where diffusers marks a first frame."""
