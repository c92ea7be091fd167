"""What ``laya-desktop check`` says about a file: every error with its place, and warnings. Looks at files; any thread.

It loads no model and opens no connection.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from laya_desktop.config.changes import LISTS
from laya_desktop.config.keys import describe, is_masked, usable
from laya_desktop.config.paths import resolve_model_path, with_adapters_found
from laya_desktop.config.schema import NodeConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import ConfigError, LayaError


def check(path: Path | str) -> tuple[int, list[str]]:
    """Exit code (0: valid, 1: not) and lines for the terminal: ``file:line:column: key: message``."""
    try:
        document = load_file(path)
    except ConfigError as error:
        return 1, [problem.render(str(path)) for problem in error.problems]
    config = document.config
    counts = ", ".join(_count(noun, len(getattr(config, kind))) for kind, noun in LISTS.items())
    return 0, [f"{path}: valid: {counts}.", *(f"{path}: warning: {w}" for w in warnings(config, document.folder))]


def warnings(config: NodeConfig, folder: Path | None) -> list[str]:
    """What is allowed but will not work as it stands, as whole sentences."""
    return [*_exposed(config), *_plain_keys(config), *_missing_files(config, folder), *_unused(config)]


def _count(noun: str, number: int) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _exposed(config: NodeConfig) -> list[str]:
    host = config.server.host.strip("[]")
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost" or host.endswith(".localhost")
    if loopback or usable(config.server.api_keys):
        return []
    return [
        f"server.host: {host} is reachable from other machines, so the node will not start without server.api_keys."
    ]


def _plain_keys(config: NodeConfig) -> list[str]:
    """Keys that everybody who reads the file can use, and masked ones that nobody can."""
    server = config.server
    keys = [(f"server.api_keys[{i}]", key) for i, key in enumerate(server.api_keys)]
    if server.admin_key is not None:
        keys.append(("server.admin_key", server.admin_key))
    found = [
        f"{place}: The key stands here as plain text. Make one in Settings, or write sha256: and its SHA-256."
        for place, key in keys
        if describe(key).plain and not is_masked(key)
    ]
    found += [
        f"{place}: This is a masked key, which opens nothing. Write the key." for place, key in keys if is_masked(key)
    ]
    for i, upstream in enumerate(config.upstreams):
        if upstream.api_key is not None and not upstream.api_key.startswith("keyring:"):
            found.append(
                f"upstreams[{i}].api_key: The key stands here as plain text. "
                f"Run 'laya-desktop key set {upstream.name}' and write keyring:{upstream.name}."
            )
    return found


def _missing_files(config: NodeConfig, folder: Path | None) -> list[str]:
    found: list[str] = []
    for i, model in enumerate(config.models):
        if model.engine == "fake":
            continue
        try:
            path = resolve_model_path(model, folder)
            if not path.is_file():
                found.append(f"models[{i}].path: There is no file '{path}'. Model '{model.name}' cannot be loaded.")
            for j, adapter in enumerate(with_adapters_found(model, folder).lora):
                if not adapter.path.is_file():
                    text = f"There is no file '{adapter.path}'. Model '{model.name}' cannot be loaded."
                    found.append(f"models[{i}].lora[{j}].path: {text}")
        except LayaError as error:
            found.append(f"models[{i}].path: {error}")
        except OSError as error:
            found.append(f"models[{i}].path: '{model.path}' cannot be looked at: {error.strerror}.")
    return found


def _unused(config: NodeConfig) -> list[str]:
    if not config.routes:
        return []  # without routes the standard paths reach every model by its name
    used = {name for route in config.routes for name in route.all_names}
    return [
        f"upstreams[{i}].name: No route leads to the upstream '{upstream.name}'."
        for i, upstream in enumerate(config.upstreams)
        if upstream.name not in used
    ]
