"""A realtime session server for interactive streaming generation.

Programs start at `Engine` (sessions in this process) or `connect` (sessions on a server); authors
of models at `FrameGeneratorFamily` or `LoopKernel`. Names are loaded when they are first used, so
that `import reverie` costs nothing and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reverie.config import Deployment
    from reverie.host import Engine
    from reverie.models.frame_generator import FrameGenerator, FrameGeneratorFamily
    from reverie.models.instance import ModelInstance
    from reverie.models.loop import LoopKernel
    from reverie.models.registry import ModelFamily
    from reverie.models.spec import ModelSpec
    from reverie.rtc.client import connect
    from reverie.sessions import commands, events
    from reverie.sessions.session import Session

__version__ = "0.1.0"

__all__ = [
    "Deployment",
    "Engine",
    "FrameGenerator",
    "FrameGeneratorFamily",
    "LoopKernel",
    "ModelFamily",
    "ModelInstance",
    "ModelSpec",
    "Session",
    "__version__",
    "commands",
    "connect",
    "events",
]

_HOMES = {
    "Deployment": "reverie.config",
    "Engine": "reverie.host",
    "FrameGenerator": "reverie.models.frame_generator",
    "FrameGeneratorFamily": "reverie.models.frame_generator",
    "LoopKernel": "reverie.models.loop",
    "ModelFamily": "reverie.models.registry",
    "ModelInstance": "reverie.models.instance",
    "ModelSpec": "reverie.models.spec",
    "Session": "reverie.sessions.session",
    "commands": "reverie.sessions",
    "connect": "reverie.rtc.client",
    "events": "reverie.sessions",
}


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'reverie' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, name)
