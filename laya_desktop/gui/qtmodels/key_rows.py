"""Keys and the reach of a node in words, from its configuration. Pure: no Qt, no clock; shows no key."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address

from laya_desktop.config.keys import ApiKey, KeyInfo, describe, usable
from laya_desktop.config.schema import NodeConfig, ServerConfig
from laya_desktop.gui.i18n import tr


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One line of the list."""

    label: str
    note: str
    warn: bool = False


@dataclass(frozen=True, slots=True)
class KeysState:
    """What the card shows.

    Attributes:
        rows: callers' keys in file order.
        admin: the key of ``/admin``, None where there is none.
        open: the configuration listens beyond this machine.
        reach: that in words.
    """

    rows: tuple[KeyRow, ...]
    admin: KeyRow | None
    open: bool
    reach: str

    @classmethod
    def of(cls, config: NodeConfig) -> KeysState:
        """From a configuration."""
        server = config.server
        rows = tuple(_row(describe(key)) for key in usable(server.api_keys))
        admin = None if server.admin_key is None else _admin(server.admin_key)
        is_open = not is_this_machine(server.host)
        return cls(rows, admin, is_open, _reach(server, is_open=is_open))

    @property
    def has_keys(self) -> bool:
        """The network may be opened."""
        return bool(self.rows)


def is_this_machine(host: str) -> bool:
    """True for an address that other machines cannot reach; the node itself looks the name up and has the last word."""
    name = host.strip("[]").lower()
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _row(info: KeyInfo) -> KeyRow:
    if info.plain:
        return KeyRow(info.label, tr("plain text in the file: replace it by a new key"), warn=True)
    return KeyRow(
        info.label, tr("made {isoformat}", isoformat=info.created.isoformat()) if info.created else tr("kept as a hash")
    )


def _admin(key: str | ApiKey) -> KeyRow:
    found = _row(describe(key))
    return KeyRow(tr("Admin"), found.note, found.warn)


def _reach(server: ServerConfig, *, is_open: bool) -> str:
    if not is_open:
        who = tr("Callers need one of the keys below.") if server.api_keys else tr("They need no key.")
        return tr("Only programs on this machine reach the node. {who}", who=who)
    everywhere = server.host in ("0.0.0.0", "::", "0")  # noqa: S104 - recognised, not bound
    place = tr("every address of this machine") if everywhere else server.host
    return tr("⚠ Others on the network reach the node on {place}; they need one of the keys below.", place=place)
