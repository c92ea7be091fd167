"""HTTP/1.1 over real sockets: order, keep-alive, limits, deadlines, disconnects."""

from __future__ import annotations

from laya_desktop.config.schema import NodeConfig
from tests.helpers.fake_gateway import FakeGateway
from tests.helpers.raw_http import RawClient, on_loop, serving

MODEL = {"name": "m", "path": "/m.gguf", "engine": "fake"}


def gateway(**server: object) -> FakeGateway:
    return FakeGateway(NodeConfig.model_validate({"server": server, "models": [MODEL]}))


@on_loop
async def test_health_is_answered_and_the_connection_kept() -> None:
    async with serving(gateway()) as (listener, port), RawClient(port) as client:
        for _ in range(3):
            got = await client.ask("GET", "/health")
            assert (got.status, got.json) == (200, {"status": "ok"})
            assert float(got.headers["x-laya-routing-us"]) > 0
        assert listener.connections == 1
        assert listener.requests_total == 3
