"""The network of DIAMOND: a denoiser around a U-Net."""
