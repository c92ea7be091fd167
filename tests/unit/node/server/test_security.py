"""Loopback or not, and the digests of keys, apart from any socket."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from laya_desktop.config.schema import ServerConfig
from laya_desktop.errors import LayaError
from laya_desktop.node.server.security import Policy, is_loopback, require_key_beyond_loopback


@dataclass
class Conn:
    local_address: str


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"]
)
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address", ["", "0.0.0.0", "::", "10.0.0.1", "box", "128.0.0.1", "::ffff:10.0.0.1", "localhost.x"]
)
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def test_the_network_needs_a_key() -> None:
    with pytest.raises(LayaError, match=r"server\.api_keys"):
        require_key_beyond_loopback(ServerConfig(host="0.0.0.0"), "0.0.0.0", loopback=False)
    require_key_beyond_loopback(ServerConfig(api_keys=("k-0123456789",)), "0.0.0.0", loopback=False)
    require_key_beyond_loopback(ServerConfig(), "127.0.0.1", loopback=True)


def test_on_every_address_the_one_that_was_called_is_ours() -> None:
    policy = Policy(ServerConfig(host="0.0.0.0", api_keys=("k-0123456789",)), "0.0.0.0", loopback=False)
    policy.check_host({"host": "10.0.0.5:5292"}, Conn("10.0.0.5"), http10=False)
    policy.check_host({"host": "10.0.0.5:5292"}, Conn("::ffff:10.0.0.5"), http10=False)
    with pytest.raises(LayaError):
        policy.check_host({"host": "10.0.0.5:5292"}, Conn("10.0.0.6"), http10=False)
    with pytest.raises(LayaError):
        policy.check_host({"host": "0.0.0.0"}, Conn("10.0.0.6"), http10=False)


def test_on_one_address_only_that_is_ours() -> None:
    policy = Policy(ServerConfig(host="10.0.0.5", api_keys=("k-0123456789",)), "10.0.0.5", loopback=False)
    policy.check_host({"host": "10.0.0.5"}, Conn("10.0.0.5"), http10=False)
    assert policy.knows("10.0.0.5")
    with pytest.raises(LayaError):
        policy.check_host({"host": "10.0.0.6"}, Conn("10.0.0.6"), http10=False)
    assert not policy.knows("10.0.0.6")


def test_only_http_1_0_may_come_without_host() -> None:
    policy = Policy(ServerConfig(), "127.0.0.1", loopback=True)
    policy.check_host({}, Conn("127.0.0.1"), http10=True)
    with pytest.raises(LayaError):
        policy.check_host({}, Conn("127.0.0.1"), http10=False)
    with pytest.raises(LayaError):
        policy.check_host({"host": "evil"}, Conn("127.0.0.1"), http10=True)


@pytest.mark.parametrize("peer", ["10.0.0.1", ""])
def test_admin_without_a_key_refuses_other_machines(peer: str) -> None:
    policy = Policy(ServerConfig(), "127.0.0.1", loopback=True)
    policy.check_admin({}, "127.0.0.1")
    with pytest.raises(LayaError) as caught:
        policy.check_admin({}, peer)
    assert caught.value.status == 403


def test_a_key_outside_ascii_is_compared_as_it_was_sent() -> None:
    policy = Policy(ServerConfig.model_construct(api_keys=("schlüssel-1234",)), "127.0.0.1", loopback=True)
    as_received = "schlüssel-1234".encode().decode("latin-1")
    policy.check_key({"x-api-key": as_received})
    with pytest.raises(LayaError):
        policy.check_key({"x-api-key": "schlussel-1234"})
