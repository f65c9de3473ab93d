"""Files: clips that are pushed, fragmented MP4 that is recorded, and the last seconds of it."""
