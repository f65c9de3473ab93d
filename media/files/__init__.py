"""Files: pushed clips, recordings as fragmented MP4, and clips of the last seconds."""
