"""A line between two network namespaces: three of them, with the line in the middle one.

    near  <- veth ->  middle: this process carries each frame  <- veth ->  far
    10.77.N.1                                                      10.77.N.2

A server runs at the near end and a client at the far end. Frames are read raw from both veth pairs
and written to the other one when their path lets them out, about 0.2 ms late on an idle machine.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Unpack

from reverie.bench.line.carrier import Carrier, send_whole_frames
from reverie.bench.line.net_namespace import NetNamespace, NetNamespaceError
from reverie.bench.line.path import Path, PathChanges, PathSettings

MOST_NUMBER = 255


class LineError(OSError):
    """A line cannot be laid here; the text says why."""


@dataclass(frozen=True, slots=True)
class EmulatedLine:
    """A line that exists for as long as its `laid` block lasts.

    Attributes:
        near: where the server is.
        far: where the client is.
        near_address: of the near end, which the far one reaches.
        far_address: of the far end.
        downlink: from near to far.
        uplink: from far to near.
    """

    near: NetNamespace
    far: NetNamespace
    near_address: str
    far_address: str
    downlink: Path
    uplink: Path

    @classmethod
    @contextmanager
    def laid(
        cls,
        settings: PathSettings | None = None,
        *,
        uplink: PathSettings | None = None,
        near: NetNamespace | None = None,
        number: int = 0,
        seed: int | None = None,
    ) -> Iterator["EmulatedLine"]:
        """Lay a line, and take it away whatever happens.

        Args:
            settings: of both directions; without them it only carries.
            uplink: of the direction from far to near, where it differs.
            near: the near end of a line that there is, for a second client of one server.
            number: of the subnet 10.77.N.0/24; each line of one near end has its own, and 0 has the
                default route.
            seed: of losses and jitter; None for others each time.

        Raises:
            LineError: it cannot be laid here.
        """
        settings = settings or PathSettings()
        paths = Path(settings, seed), Path(uplink or settings, seed and seed + 1)
        with ExitStack() as stack:
            try:
                near = near or stack.enter_context(NetNamespace.made())
                far = stack.enter_context(NetNamespace.made())
                middle = stack.enter_context(NetNamespace.made())
                addresses = f"10.77.{number}.1", f"10.77.{number}.2"
                _plug(near, addresses[0], middle, "near", f"line{number}", default=number == 0)
                _plug(far, addresses[1], middle, "far", "line", default=True)
                with middle.entered():
                    carrier = Carrier.between("near", "far")
            except (NetNamespaceError, OSError) as error:
                raise LineError(f"a line needs root, `ip` and veth: {error}") from error
            stack.enter_context(carrier.carrying(*paths))
            yield cls(near, far, *addresses, *paths)

    def change(self, **changes: Unpack[PathChanges]) -> None:
        """Change settings of both directions at once; see `Path.change` for one of them."""
        self.downlink.change(**changes)
        self.uplink.change(**changes)


def _plug(
    end: NetNamespace, address: str, middle: NetNamespace, socket: str, plug: str, *, default: bool
) -> None:
    """Connect an end to the middle by a pair of veth devices, one in each."""
    middle.ip("link", "add", socket, "type", "veth", "peer", "name", plug, "netns", end.name)
    for namespace, device in ((middle, socket), (end, plug)):
        with namespace.entered():
            send_whole_frames(device)
        # No IPv6: its own chatter would be counted, and a browser would try its addresses.
        namespace.ip("link", "set", device, "addrgenmode", "none")
    end.ip("addr", "add", f"{address}/24", "dev", plug)
    for namespace, device in ((middle, socket), (end, plug)):
        namespace.ip("link", "set", device, "up")
    if default:
        end.ip("route", "add", "default", "dev", plug)
