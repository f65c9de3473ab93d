"""The exact pocket world in numpy: the map, its tiles, its walker and its captions."""
