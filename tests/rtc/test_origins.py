"""C38: which hosts and origins are ours."""

import pytest

from reverie.rtc.options import ServerOptions
from reverie.rtc.origins import TrustRules

RULES = TrustRules(
    ServerOptions(allowed_hosts=("play.example",), allowed_origins=("https://Studio.example/",))
)


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3",
     "play.example"],
)  # fmt: skip
def test_our_own_names_and_addresses_are_ours(host: str) -> None:
    assert not RULES.refuses_host(host)


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost",
     "localhost/x", "localhost:port", "[::1"],
)  # fmt: skip
def test_any_other_host_is_refused(host: str | None) -> None:
    assert RULES.refuses_host(host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, "localhost:8000"),
        ("http://localhost:8000", "localhost:8000"),
        ("https://play.example", "play.example"),
        ("https://studio.example", "localhost:8000"),
    ],
)
def test_our_own_page_a_listed_one_and_no_page_may_speak(origin: str | None, host: str) -> None:
    assert not RULES.refuses_origin(origin, host)


@pytest.mark.parametrize(
    "origin",
    ["null", "", "https://evil.example", "http://localhost:3000", "http://localhost",
     "file://localhost:8000", "http://[::1", "https://studio.example.evil.example", "*"],
)  # fmt: skip
def test_any_other_page_is_refused(origin: str) -> None:
    assert RULES.refuses_origin(origin, "localhost:8000")
