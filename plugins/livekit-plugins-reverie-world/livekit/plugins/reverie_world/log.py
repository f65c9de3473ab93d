"""The logger of this plugin."""

import logging

logger = logging.getLogger("livekit.plugins.reverie_world")
