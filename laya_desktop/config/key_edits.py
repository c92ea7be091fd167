"""Making and revoking callers' keys, as edits of a configuration. Pure but for the random key; any thread.

The key itself is handed out once and kept nowhere; the configuration gets its hash.
"""

from __future__ import annotations

from datetime import date

from laya_desktop.config.edits import edit
from laya_desktop.config.keys import describe, new_key
from laya_desktop.config.schema import NodeConfig, ServerConfig
from laya_desktop.errors import LayaError, near

ADMIN = "admin"


def with_new_key(config: NodeConfig, name: str, today: date) -> tuple[NodeConfig, str]:
    """The configuration with one more key, and the key.

    Raises:
        LayaError: 400 for a bad name, 409 (``key_exists``) for one that is taken.
    """
    key, kept = new_key(name, today)
    if name in _labels(config.server):
        raise LayaError(
            f"There is a key named '{name}' already.",
            hint="Take another name, or revoke that key first.",
            code="key_exists",
            status=409,
        )
    return _with_server(config, api_keys=(*config.server.api_keys, kept)), key


def without_key(config: NodeConfig, label: str) -> NodeConfig:
    """The configuration without the key of that label (``keys.describe``).

    Raises:
        LayaError: 404 (``key_not_found``).
    """
    kept = tuple(key for key in config.server.api_keys if describe(key).label != label)
    if len(kept) == len(config.server.api_keys):
        labels = _labels(config.server)
        raise LayaError(
            f"There is no key '{label}'.{near(label, labels)}",
            hint=f"Keys: {', '.join(labels) or 'none'}.",
            code="key_not_found",
            status=404,
        )
    return _with_server(config, api_keys=kept)


def with_new_admin_key(config: NodeConfig, today: date) -> tuple[NodeConfig, str]:
    """The configuration with a new key for ``/admin`` in place of the one there was, and the key."""
    key, kept = new_key(ADMIN, today)
    return _with_server(config, admin_key=kept), key


def without_admin_key(config: NodeConfig) -> NodeConfig:
    """The configuration without a key for ``/admin``, which then answers programs on this machine only.

    Raises:
        LayaError: 404 (``key_not_found``).
    """
    if config.server.admin_key is None:
        raise LayaError("There is no admin key.", hint="Make one first.", code="key_not_found", status=404)
    return _with_server(config, admin_key=None)


def _labels(server: ServerConfig) -> list[str]:
    return [describe(key).label for key in server.api_keys]


def _with_server(config: NodeConfig, **changes: object) -> NodeConfig:
    server = {name: getattr(config.server, name) for name in ServerConfig.model_fields} | changes
    return edit(config, server=ServerConfig(**server))
