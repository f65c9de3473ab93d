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
    from reverie.models.contract.instance import ModelInstance
    from reverie.models.contract.loop import LoopKernel
    from reverie.models.contract.registry import ModelFamily
    from reverie.models.contract.spec import ModelSpec
    from reverie.models.frame_generator import FrameGenerator, FrameGeneratorFamily
    from reverie.rtc.client.connect import connect
    from reverie.sessions.client.session import Session
    from reverie.sessions.protocol import commands, events

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
    "LoopKernel": "reverie.models.contract.loop",
    "ModelFamily": "reverie.models.contract.registry",
    "ModelInstance": "reverie.models.contract.instance",
    "ModelSpec": "reverie.models.contract.spec",
    "Session": "reverie.sessions.client.session",
    "connect": "reverie.rtc.client.connect",
}

_MODULES = {
    "commands": "reverie.sessions.protocol.commands",
    "events": "reverie.sessions.protocol.events",
}


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'reverie' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return getattr(home, name)
