"""Settings of the server, with defaults that are safe on a shared machine.

Every limit that a client can reach is here, and the error that it then gets names the limit.
"""

from ipaddress import ip_network

from pydantic import BaseModel, ConfigDict, Field, field_validator

from reverie.rtc.webrtc_options import WebRtcOptions


class ServerOptions(BaseModel):
    """Address, trust, sizes, rates and times of the HTTP and WebSocket server.

    Attributes:
        host: address to listen on; the default is reachable from this machine only.
        port: 0 takes a free one.
        allowed_hosts: names that the Host header may have in addition to `host`, localhost and IP
            addresses. A page on another site cannot send an address or localhost as its host.
        allowed_origins: origins of other web pages that may use this server, such as
            `https://play.example`. There is no wildcard.
        trusted_proxies: addresses or networks of proxies in front of this server, such as
            `10.0.0.2` or `10.1.0.0/16`. Only their `X-Forwarded-For` names the client that is
            counted, and only their `X-Forwarded-Host`, `-Proto` and `-Prefix` the URL that the
            client requested.
        root_path: the prefix of all paths, such as `/worlds`, where a proxy publishes the server
            below one; whether the proxy keeps it in the path or takes it away does not matter.
        openings_per_min: sessions and forks that one address (of IPv6, a /64) may request a minute,
            half of them at once. Null sets no limit.
        offers_per_min: likewise, WebRTC offers and restarts.
        message_bytes: longest WebSocket message; a longer one ends the connection with 1009
            before it is read in full.
        body_bytes: longest HTTP request body.
        commands_per_s: commands of one attachment, in the long run.
        command_burst: commands that may come at once before the rate counts.
        hello_timeout_s: from the opening of a socket to its complete hello.
        request_timeout_s: from the connection to the end of a request's head, and for its body.
        message_timeout_s: from the first byte of a message to its last.
        send_timeout_s: a client that reads nothing for this long is closed as `slow_viewer`.
        close_timeout_s: for the client's half of the close handshake; then the socket is dropped.
        drain_timeout_s: from the first SIGTERM to the end of the process.
        ping_interval_s: between WebSocket pings.
        ping_timeout_s: for a pong.
        send_buffer_bytes: bytes that may wait for one client in this process, besides its outbox.
        unsent_bytes: bytes that may wait for one client in the kernel, unsent.
        connections: open sockets in all. When all are taken, an address that holds more than a
            new one loses one.
        upload_bytes: longest picture or clip that is uploaded.
        upload_timeout_s: for a whole upload.
        uploads: at once, in all. When all are taken, an address or owner that holds more than a
            new one loses one.
        rtc: settings of WebRTC.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    root_path: str = Field(default="", max_length=200, pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    openings_per_min: int | None = Field(default=120, ge=1)
    offers_per_min: int | None = Field(default=240, ge=1)
    message_bytes: int = Field(default=2**20, ge=1024, le=2**28)
    body_bytes: int = Field(default=2**20, ge=1024, le=2**28)
    commands_per_s: int = Field(default=1000, ge=1)
    command_burst: int = Field(default=2000, ge=1)
    hello_timeout_s: float = Field(default=5.0, gt=0)
    request_timeout_s: float = Field(default=5.0, gt=0)
    message_timeout_s: float = Field(default=10.0, gt=0)
    send_timeout_s: float = Field(default=10.0, gt=0)
    close_timeout_s: float = Field(default=5.0, gt=0)
    drain_timeout_s: float = Field(default=20.0, gt=0)
    ping_interval_s: float = Field(default=20.0, gt=0)
    ping_timeout_s: float = Field(default=20.0, gt=0)
    send_buffer_bytes: int = Field(default=2**16, ge=4096)
    unsent_bytes: int = Field(default=2**16, ge=4096)
    connections: int = Field(default=1000, ge=1)
    upload_bytes: int = Field(default=2**25, ge=1024, le=2**30)
    upload_timeout_s: float = Field(default=60.0, gt=0)
    uploads: int = Field(default=4, ge=1)
    rtc: WebRtcOptions = Field(default=WebRtcOptions())

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for each in proxies:
            try:
                ip_network(each, strict=False)
            except ValueError:
                raise ValueError(f"{each!r} is no address or network such as 10.1.0.0/16") from None
        return proxies

    @field_validator("allowed_origins")
    @classmethod
    def _no_wildcard(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if any("*" in origin for origin in origins):
            raise ValueError(
                "wildcards are not supported: name each origin, such as https://play.example"
            )
        return origins
