"""Pictures: intake, scaling, encoders, and the fan-out that encodes once for all viewers."""
