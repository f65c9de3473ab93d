"""Settings of WebRTC. The default uses no STUN or TURN server."""

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
    """STUN and TURN servers, ports, counts, times and rates.

    Attributes:
        enabled: whether WebRTC is served; otherwise clients use the WebSocket.
        stun_urls: such as `stun:stun.example:3478`; clients get all, this server asks the first.
        turn_urls: likewise of TURN servers, such as `turn:turn.example:3478?transport=udp`.
        turn_secret: shared with the TURN servers; clients get expiring credentials made with it.
        turn_ttl_s: how long such credentials are valid.
        relay_only: use relayed candidates only, so that no side sees the address of the other.
        ports: lowest and highest UDP port of this server's candidates; null: any free port.
        peers_per_session: peers of one session, including those that are not connected yet; one
            place is reserved for the driver, and offers to take over are always admitted.
        peers: likewise of the server.
        connect_timeout_s: from the answer to a connected peer with its `events` channel.
        gather_timeout_s: for STUN and TURN servers to answer this server.
        heartbeat_s: a peer that sends nothing on `events` for so long is closed.
        close_timeout_s: for closing a peer; then its connection is dropped.
        min_bitrate: lowest bitrate of video in bits a second, whatever a receiver reports.
        max_bitrate: highest bitrate of video, also used while a receiver reports nothing.
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
            raise ValueError("ports: the highest must be above the lowest; a peer needs two")
        if self.min_bitrate > self.max_bitrate:
            raise ValueError("min_bitrate must not exceed max_bitrate")
        if self.turn_urls and self.turn_secret is None:
            raise ValueError("turn_urls needs turn_secret, which is shared with the TURN servers")
        if self.relay_only and not self.turn_urls:
            raise ValueError("relay_only needs turn_urls, because there are no other candidates")
        return self
