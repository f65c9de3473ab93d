"""What an operator may set about WebRTC. The default names no server outside of this one."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator

Port = Annotated[int, Field(ge=1024, le=65535)]
StunUrl = Annotated[str, StringConstraints(pattern=r"^stuns?:[^\s,?]+$", max_length=256)]
TurnUrl = Annotated[
    str,
    StringConstraints(pattern=r"^turns?:[^\s,?]+(\?transport=(udp|tcp))?$", max_length=256),
]

_FOR_TWO_SOCKETS = 2


class WebRtcOptions(BaseModel):
    """Servers that help peers to find each other, ports, counts, times and rates.

    Attributes:
        enabled: whether WebRTC is served at all; without, clients use the WebSocket.
        stun_urls: such as `stun:stun.example:3478`; clients get all, this server asks the first.
        turn_urls: likewise of TURN servers, such as `turn:turn.example:3478?transport=udp`.
        turn_secret: shared with the TURN servers; clients get credentials made of it that end.
        turn_ttl_s: how long such credentials are good.
        relay_only: let nobody see anybody's address: only relayed candidates are used.
        ports: lowest and highest UDP port of this server's candidates; null: any that are free.
        peers_per_session: peers of one session, those that do not stand yet included; one place is
            kept for who drives, and offers to take over have room whoever watches.
        peers: likewise of the server.
        connect_timeout_s: from the answer to a peer that stands, with its `events` channel.
        gather_timeout_s: for STUN and TURN servers to answer this server.
        heartbeat_s: a peer that is silent on `events` for so long is closed.
        close_timeout_s: for the end of a peer; what is left then is cut.
        min_bitrate: bits a second that video is encoded with however little a receiver reports.
        max_bitrate: likewise at most, also while a receiver reports nothing.
        inbox_messages: a peer's messages that may wait to be read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    stun_urls: tuple[StunUrl, ...] = ()
    turn_urls: tuple[TurnUrl, ...] = ()
    turn_secret: SecretStr | None = None
    turn_ttl_s: int = Field(default=3600, ge=60, le=86_400)
    relay_only: bool = False
    ports: tuple[Port, Port] | None = None
    peers_per_session: int = Field(default=16, ge=1)
    peers: int = Field(default=256, ge=1)
    connect_timeout_s: float = Field(default=15.0, gt=0, le=30)
    gather_timeout_s: float = Field(default=5.0, gt=0)
    heartbeat_s: float = Field(default=5.0, gt=0)
    close_timeout_s: float = Field(default=5.0, gt=0)
    min_bitrate: int = Field(default=150_000, ge=10_000)
    max_bitrate: int = Field(default=4_000_000, ge=10_000, le=100_000_000)
    inbox_messages: int = Field(default=1024, ge=16)

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.ports is not None and self.ports[1] - self.ports[0] + 1 < _FOR_TWO_SOCKETS:
            raise ValueError("ports: the highest is above the lowest, or no peer can be had")
        if self.min_bitrate > self.max_bitrate:
            raise ValueError("min_bitrate is at most max_bitrate")
        if self.turn_urls and self.turn_secret is None:
            raise ValueError("turn_secret: TURN servers need the secret that is shared with them")
        if self.relay_only and not self.turn_urls:
            raise ValueError("relay_only needs turn_urls, or no peer finds another")
        return self
