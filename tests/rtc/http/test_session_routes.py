"""Sessions over HTTP, and what is refused there (C17, C36 at opening)."""

import json
from typing import Any

import pytest
import timed_model
from rtc_rig import ServerRig, bearer, server_rig
from rtc_serving import RawSocket, upgrade
from starlette.requests import Request
from waiting import until

from reverie.rtc.addresses import Addresses
from reverie.rtc.options import ServerOptions
from reverie.sessions import SessionLimits


async def test_a_session_is_opened_shown_listed_and_ended(rig: ServerRig) -> None:
    opened = await rig.open(prompt="a lake", seed=5, parameters={"brightness": 1})
    path = f"/v1/sessions/{opened['id']}"
    assert len({opened["token"], opened["watch_token"], opened["owner"]}) == 3
    assert opened["view"]["prompt"] == "a lake"
    assert opened["view"]["seed"] == 5
    for secret in ("token", "watch_token", "owner"):
        shown = await rig.http.get(path, headers=bearer(opened[secret]))
        assert shown.json()["id"] == opened["id"]
    listed = await rig.http.get("/v1/sessions", headers=bearer(opened["owner"]))
    assert [each["id"] for each in listed.json()["sessions"]] == [opened["id"]]
    assert (await rig.http.delete(path, headers=bearer(opened["token"]))).status_code == 204
    gone = await rig.http.get(path, headers=bearer(opened["token"]))
    assert (gone.status_code, gone.json()["error"]["code"]) == (410, "closed")


async def test_an_owner_collects_sessions_and_ends_them(rig: ServerRig) -> None:
    first = await rig.open()
    answer = await rig.http.post("/v1/sessions", json={}, headers=bearer(first["owner"]))
    second = answer.json()
    listed = await rig.http.get("/v1/sessions", headers=bearer(first["owner"]))
    assert [each["id"] for each in listed.json()["sessions"]] == [first["id"], second["id"]]
    path = f"/v1/sessions/{second['id']}"
    assert (await rig.http.delete(path, headers=bearer(first["owner"]))).status_code == 204


async def test_secrets_do_only_what_they_are_for(rig: ServerRig) -> None:
    opened, other = await rig.open(), await rig.open()
    path = f"/v1/sessions/{opened['id']}"
    watched = await rig.http.delete(path, headers=bearer(opened["watch_token"]))
    assert (watched.status_code, watched.json()["error"]["code"]) == (403, "read_only")
    for secret in (other["token"], other["owner"], "nonsense"):
        answer = await rig.http.delete(path, headers=bearer(secret))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_session")
    assert (await rig.http.get(path)).status_code == 401
    assert (await rig.http.get("/v1/sessions")).status_code == 401
    stranger = await rig.http.get("/v1/sessions", headers=bearer("nonsense"))
    assert (stranger.status_code, stranger.json()["error"]["code"]) == (401, "bad_owner")


async def test_only_the_server_makes_the_secret_of_an_owner(rig: ServerRig) -> None:
    known = await rig.open()
    for secret in ("nonsense", known["token"], known["owner"][:-1] + "!", "x" * 300):
        answer = await rig.http.post("/v1/sessions", json={}, headers=bearer(secret))
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["field"]) == (
            401,
            "bad_owner",
            "Authorization",
        )
    basic = {"Authorization": "Basic eDp5"}
    assert (await rig.http.post("/v1/sessions", json={}, headers=basic)).status_code == 401
    assert len(rig.store) == 1


async def test_a_client_without_an_owner_is_counted_by_address() -> None:
    async with server_rig(limits=SessionLimits(sessions_per_address=2), sessions=8) as rig:
        first = await rig.open()
        await rig.open()
        for headers in ({}, bearer(first["owner"])):
            refused = await rig.http.post("/v1/sessions", json={}, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (
                429,
                "too_many_sessions_per_address",
            )
        path = f"/v1/sessions/{first['id']}"
        await rig.http.delete(path, headers=bearer(first["token"]))
        await until(lambda: len(rig.store) == 1)
        await rig.open()


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("testclient", "testclient"),
    ],
)
def test_an_address_is_counted_once_however_it_is_written(host: str, counted: str) -> None:
    assert Addresses().of(Request({"type": "http", "client": (host, 1), "headers": []})) == counted


async def test_only_a_driver_forks_a_session(rig: ServerRig) -> None:
    opened = await rig.open(prompt="a lake", seed=5)
    path = f"/v1/sessions/{opened['id']}/fork"
    async with rig.client(opened) as client:
        await client.chunk(2)
        made = await rig.http.post(path, json={}, headers=bearer(opened["token"]))
    assert made.status_code == 201
    fork = made.json()
    assert fork["owner"] == opened["owner"]
    assert len({opened["id"], fork["id"], opened["token"], fork["token"]}) == 4
    assert (fork["view"]["seed"], fork["view"]["prompt"]) == (5, "a lake")
    async with rig.client(fork) as client:
        assert (await client.chunk(2)).chunk >= 2
    refused = [
        (opened["watch_token"], {}, 403, "read_only"),
        ("nobody", {}, 404, "no_such_session"),
        (opened["token"], {"chunk": -1}, 400, "out_of_range"),
        (opened["token"], {"chunk": "1"}, 400, "wrong_type"),
        (opened["token"], {"seed": 1}, 400, "unknown_field"),
    ]
    for token, body, status, code in refused:
        answer = await rig.http.post(path, json=body, headers=bearer(token))
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert len(rig.store) == 2


BAD_BODIES = [
    ('{"seed":NaN}', "non_finite", "seed"),
    ('{"seed":1e400}', "non_finite", "seed"),
    ('{"seed":-1}', "out_of_range", "seed"),
    ('{"seed":1.5}', "wrong_type", "seed"),
    ('{"seed":true}', "wrong_type", "seed"),
    ('{"seed":"512"}', "wrong_type", "seed"),
    ('{"seed":9223372036854775808}', "out_of_range", "seed"),
    (f'{{"seed":{"1" * 5000}}}', "out_of_range", "seed"),
    ('{"seed":1,"seed":2}', "duplicate_key", "seed"),
    ('{"parameters":{"step_ms":NaN}}', "non_finite", "parameters.step_ms"),
    ('{"parameters":{"step_ms":true}}', "wrong_type", "parameters.step_ms"),
    ('{"parameters":{"step_ms":-1}}', "out_of_range", "parameters.step_ms"),
    ('{"parameters":{"nope":1}}', "unknown_parameter", "parameters.nope"),
    ('{"model":"nope"}', "unknown_model", "model"),
    ('{"model":"../../etc/passwd"}', "out_of_range", "model"),
    ('{"program":"nope"}', "unknown_program", "program"),
    ('{"prompt":null}', "wrong_type", "prompt"),
    ('{"prompt":["x"]}', "wrong_type", "prompt"),
    ('{"prompt":"\\ud83d"}', "bad_text", "prompt"),
    (json.dumps({"prompt": "x" * 100_000}), "too_long", "prompt"),
    ('{"stop":"x"}', "wrong_type", "stop"),
    ('{"stop":[7]}', "wrong_type", "stop"),
    ('{"stop":["x"]}', "not_enabled", "stop"),
    ('{"width":512}', "unknown_field", "width"),
    ("[" * 100_000, "too_deep", "$"),
    ("[]", "not_an_object", "$"),
    ("\ufeff{}", "byte_order_mark", "$"),
    ("{", "not_json", "$"),
]


async def test_a_wrong_body_is_refused_and_its_field_named(rig: ServerRig) -> None:
    headers = {"Content-Type": "application/json"}
    for body, code, field in BAD_BODIES:
        answer = await rig.http.post("/v1/sessions", content=body.encode(), headers=headers)
        error: dict[str, Any] = answer.json()["error"]
        assert (answer.status_code, error["code"], error["field"]) == (400, code, field), body[:80]
    assert len(rig.store) == 0


async def test_an_empty_prompt_and_an_empty_body_are_fine(rig: ServerRig) -> None:
    assert (await rig.open(prompt="   "))["view"]["prompt"] == ""
    assert (await rig.http.post("/v1/sessions")).status_code == 201


async def test_a_body_that_is_not_declared_as_json_is_refused(rig: ServerRig) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": kind}
        answer = await rig.http.post("/v1/sessions", content=b"{}", headers=headers)
        assert answer.status_code == 415
    assert len(rig.store) == 0


async def test_a_body_over_the_limit_is_refused_and_the_limit_named() -> None:
    async with server_rig(server=ServerOptions(body_bytes=2048)) as rig:

        async def pieces() -> Any:
            for _ in range(4):
                yield b" " * 1024

        headers = {"Content-Type": "application/json"}
        for content in (b" " * 2049, pieces()):
            answer = await rig.http.post("/v1/sessions", content=content, headers=headers)
            assert answer.status_code == 413
            assert "2048" in answer.json()["error"]["message"]


async def test_a_body_that_stops_half_way_is_ended_in_time() -> None:
    async with server_rig(server=ServerOptions(request_timeout_s=0.2)) as rig:
        raw = await RawSocket.open(rig.url)
        await raw.say(
            b"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        answer = await raw.rest(10)
        assert b"HTTP/1.1 408" in answer
        assert b"request_timeout" in answer
        await raw.close()


async def test_counts_are_limited_and_the_limit_is_named() -> None:
    limits = SessionLimits(sessions=3, sessions_per_owner=1)
    async with server_rig(limits=limits, sessions=8) as rig:
        first = await rig.open()
        own = await rig.http.post("/v1/sessions", json={}, headers=bearer(first["owner"]))
        assert (own.status_code, own.json()["error"]["code"]) == (
            429,
            "too_many_sessions_per_owner",
        )
        assert int(own.headers["Retry-After"]) >= 1
        await rig.open()
        await rig.open()
        full = await rig.http.post("/v1/sessions", json={})
        assert (full.status_code, full.json()["error"]["code"]) == (503, "too_many_sessions")
        assert "3" in full.json()["error"]["message"]


async def test_a_full_pool_queues_then_refuses_and_says_that_it_is_not_ready() -> None:
    async with server_rig(sessions=1, waiting_line=1) as rig:
        running = await rig.open()
        assert (await rig.http.get("/readyz")).status_code == 200
        queued = await rig.open()
        assert queued["view"]["state"] == "queued"
        ready = await rig.http.get("/readyz")
        assert (ready.status_code, ready.json()["exhausted"]) == (503, True)
        refused = await rig.http.post("/v1/sessions", json={})
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            503,
            "too_many_waiting_line",
        )
        assert refused.json()["error"]["retry_after_s"] > 0
        path = f"/v1/sessions/{running['id']}"
        await rig.http.delete(path, headers=bearer(running["token"]))
        async with rig.client(queued) as client:
            await client.chunk(0)
        assert (await rig.http.get("/readyz")).status_code == 200


async def test_health_schema_models_and_metrics_say_what_is_true(rig: ServerRig) -> None:
    await rig.open()
    assert (await rig.http.get("/healthz")).json() == {"alive": True}
    ready = (await rig.http.get("/readyz")).json()
    assert ready["ready"] is True
    assert ready["models"]["stub"]["busy"] == ready["sessions"] == 1
    schema = (await rig.http.get("/v1/schema")).json()
    assert {"PushText", "MediaChunk"} <= set(schema["$defs"])
    assert "token" in schema["hello"]["properties"]
    program = (await rig.http.get("/v1/models")).json()["models"][0]["programs"][0]
    assert program["name"] == "world"
    assert [control["name"] for control in program["controls"]] == ["move", "look"]
    metrics = (await rig.http.get("/metrics")).text
    assert "reverie_sessions_created_total 1.0" in metrics
    assert 'reverie_slots_busy{model="stub"} 1.0' in metrics


async def test_the_page_and_its_files_are_served_and_nothing_else(rig: ServerRig) -> None:
    page = await rig.http.get("/")
    assert page.headers["Content-Type"].startswith("text/html")
    script = await rig.http.get("/static/main.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    again = await rig.http.get("/static/main.js", headers={"If-None-Match": script.headers["ETag"]})
    assert again.status_code == 304
    for name in ("../__init__.py", "..%2f__init__.py", "__init__.py", "%2fetc/passwd", "", "a%00"):
        assert (await rig.http.get(f"/static/{name}")).status_code == 404


async def test_what_is_not_there_has_the_form_of_all_errors(rig: ServerRig) -> None:
    for method, path in (("PUT", "/v1/sessions"), ("GET", "/v1/nothing"), ("GET", "/static/no")):
        answer = await rig.http.request(method, path)
        assert answer.status_code in (404, 405)
        assert set(answer.json()["error"]) == {"code", "message", "field", "retry_after_s"}


@pytest.mark.parametrize("headers", ["", "Origin: https://elsewhere.example\r\n"])
async def test_a_websocket_that_is_not_let_in_is_told_so_in_the_form_of_all_errors(
    rig: ServerRig, headers: str, caplog: pytest.LogCaptureFixture
) -> None:
    raw = await RawSocket.open(rig.url)
    await raw.say(upgrade("/v1/nothing", extra=headers))
    head, _, body = (await raw.rest(5)).partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    expected = (b"403", "foreign_origin") if headers else (b"404", "not_found")
    assert (head.split()[1], error["code"]) == expected
    assert set(error) == {"code", "message", "field", "retry_after_s"}
    assert not caplog.records
    await raw.close()


async def test_a_request_with_two_lengths_is_refused(rig: ServerRig) -> None:
    raw = await RawSocket.open(rig.url)
    await raw.say(
        b"POST /v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    )
    answer = await raw.rest(5)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"bad_request" in answer
    assert len(rig.store) == 0
    await raw.close()


async def test_a_machine_that_is_too_slow_is_told_in_numbers() -> None:
    async with server_rig(family=timed_model.LOCATION) as rig:
        speed = (await rig.http.get("/readyz")).json()["models"]["stub"]["speed"]
        assert (speed["makes_hz"], speed["declared_hz"], speed["keeps_rate"]) == (7.9, 24.0, False)
        assert speed["shortfall"] == "makes 7 of 24 pictures a second here"
        assert (speed["precision"], speed["threads"]) == ("float32", 1)
        assert speed["tried"][1]["skipped"] == "it is not supported"
        view = (await rig.open())["view"]
        assert view["speed"] == {"makes_hz": 7.9, "declared_hz": 24.0, "keeps_rate": False}


async def test_a_model_that_was_not_timed_says_nothing_of_its_speed(rig: ServerRig) -> None:
    assert (await rig.http.get("/readyz")).json()["models"]["stub"]["speed"] is None
    assert (await rig.open())["view"]["speed"] is None
