"""Keys never reach the log, whoever quotes them."""

from __future__ import annotations

import logging

import pytest

from laya_desktop import logs
from laya_desktop.logs.redact import redact

KEY = "k3y-0123456789abcdef"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {KEY}",
        f"authorization: {KEY}",
        f"{{'authorization': 'Bearer {KEY}', 'x': 'kept'}}",
        f"('Authorization', 'Bearer {KEY}')",
        f"b'Authorization: Bearer {KEY}\\r\\nkept'",
        f"X-API-Key={KEY}",
        f"UpstreamConfig(api_key='{KEY}')",
        f'"x-api-key": "{KEY}"',
        f"Proxy-Authorization: Basic {KEY}",
        f"Cookie: session={KEY}",
        f"sent bearer {KEY} there",
        f"made laya-{KEY}{KEY}",
        f"OpenAI sk-{KEY}",
    ],
)
def test_a_key_is_taken_out(text: str) -> None:
    assert KEY not in redact(text)
    assert "(hidden)" in redact(text)
    assert ("kept" in text) == ("kept" in redact(text))


@pytest.mark.parametrize(
    "text",
    [
        "Listening on http://127.0.0.1:5292",
        "POST /v1/chat/completions answered 200 (request 0123456789abcdef0123)",
        "The header authorization is there twice. Send it once.",
        "Upstream 'box' needs the key 'box', and the keyring has none.",
        "api_key: keyring:big-box",
        "api_key=None",
        "laya-desktop.yaml: valid: 1 model, 1 upstream.",
        "This needs an API key. Send it as 'Authorization: …'",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert redact(text) == text


def test_messages_and_tracebacks_are_redacted_before_they_are_queued() -> None:
    handle = logs.setup("info", None)
    try:
        log = logging.getLogger("laya_desktop.test")
        log.info("headers %s", {"authorization": f"Bearer {KEY}"})
        try:
            raise ValueError(f"x-api-key: {KEY}")
        except ValueError:
            log.exception("It failed")
        assert handle.flush()
        text = "\n".join(line.message for line in handle.ring.since(0))
    finally:
        handle.close()
    assert "It failed" in text
    assert "ValueError" in text
    assert KEY not in text
