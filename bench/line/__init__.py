"""A bad line between two network namespaces, in userspace: delay, jitter, loss, rate, reordering.

Start at `line.py`. The kernel's own emulator (netem) is missing from many kernels; this one needs
root and Debian's iproute2, and no module of the kernel but veth.
"""

from reverie.bench.line.line import EmulatedLine, LineError
from reverie.bench.line.net_namespace import NetNamespace, NetNamespaceError
from reverie.bench.line.path import PathCounts, PathSettings

__all__ = [
    "EmulatedLine",
    "LineError",
    "NetNamespace",
    "NetNamespaceError",
    "PathCounts",
    "PathSettings",
]
