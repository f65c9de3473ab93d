"""Sound: detectors, resampling, encoders, and the fan-out that encodes once for all listeners."""
