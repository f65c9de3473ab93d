"""What families share next to the contract: checkpoints, adapters, guidance, placement."""
