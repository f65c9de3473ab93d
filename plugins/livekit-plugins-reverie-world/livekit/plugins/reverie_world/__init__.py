"""Generated worlds as participants of a LiveKit room, by a reverie server or in this process.

`WorldSession` shows a world in a room and lets people, and a voice agent with tools, steer it.
Import this at the top of a module: plugins register on the main thread. The import is light; what
runs a world is loaded when the first one starts.
"""

from livekit.agents import Plugin
from livekit.plugins.reverie_world.log import logger
from livekit.plugins.reverie_world.tools import world_tools
from livekit.plugins.reverie_world.version import __version__
from livekit.plugins.reverie_world.world_session import WorldSession

__all__ = ["WorldSession", "__version__", "world_tools"]


class ReveriePlugin(Plugin):
    """Registers this plugin with the agents framework."""

    def __init__(self) -> None:
        super().__init__(__name__, __version__, __package__ or __name__, logger)


Plugin.register_plugin(ReveriePlugin())
