"""The networks of Wan: the transformer, the VAE, the fast decoder, the text encoder."""
