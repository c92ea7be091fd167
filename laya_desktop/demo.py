"""``laya-desktop demo``: the bundled model on an embedded node, and one real chat through a route.

The chat goes over HTTP like any client's; every figure comes from the answer.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from laya_desktop import app, paths
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.node.parts import Overrides

MODEL = "smollm2-135m"
PROMPT = "What is a router? Answer in one short sentence."
MAX_TOKENS = 48
LOAD_TIMEOUT_S = 120.0


def reply() -> dict[str, Any]:
    """Load the demo model, chat once, and say how it went.

    Returns:
        ``reply`` (text), ``route``, ``routing_us``, ``queue_ms``, ``ttft_s``, ``decode_tokens_per_s``,
        ``prompt_tokens``, ``completion_tokens``, ``device``, ``load_s``.

    Raises:
        LayaError: the model is not installed or failed; the answer was an error.
    """
    session = app.open_session(load_file(paths.configs_dir() / "demo.yaml"), Overrides(port=0), console=False)
    try:
        session.service.start_node().result(10)
        started_s = time.monotonic()
        session.service.load_model(MODEL).result(LOAD_TIMEOUT_S)
        load_s = time.monotonic() - started_s
        url = app.address(session)
        answer = chat(url.removeprefix("http://"), "/v1/model/chat/completions")
        model = session.service.snapshot.model(MODEL)
        return answer | {"device": model.device if model else None, "load_s": round(load_s, 3)}
    finally:
        session.close()


def window() -> int:
    """The window on the demo configuration, with the model loading."""
    return app.run_window(paths.configs_dir() / "demo.yaml", Overrides(), load=MODEL)


def chat(netloc: str, path: str) -> dict[str, Any]:
    """One streamed chat; times the first token from the moment the request was written.

    Raises:
        LayaError: the server answered with an error.
    """
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    connection = http.client.HTTPConnection(netloc, timeout=LOAD_TIMEOUT_S)
    try:
        sent_s = time.monotonic()
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise LayaError(f"The demo chat failed with {response.status}: {response.read().decode()}")
        return _read_stream(response, sent_s)
    finally:
        connection.close()


def _read_stream(response: http.client.HTTPResponse, sent_s: float) -> dict[str, Any]:
    text = ""
    usage: dict[str, Any] = {}
    times: list[float] = []
    for line in response:
        if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
            continue
        chunk = json.loads(line[6:])
        if "error" in chunk:
            raise LayaError(f"The demo chat broke off: {chunk['error']['message']}")
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            if piece := choice["delta"].get("content"):
                text += piece
                times.append(time.monotonic())
    tokens = usage.get("completion_tokens")
    span_s = times[-1] - times[0] if len(times) > 1 else None
    return {
        "reply": text.strip(),
        "route": response.headers["X-Laya-Route"],
        "routing_us": float(response.headers["X-Laya-Routing-Us"]),
        "queue_ms": float(response.headers["X-Laya-Queue-Ms"]),
        "ttft_s": round(times[0] - sent_s, 4) if times else None,
        "decode_tokens_per_s": round((tokens - 1) / span_s, 1) if tokens and tokens > 1 and span_s else None,
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": tokens,
    }
