"""What a request says about the response cache, and who asks. Pure functions on its headers.

``Cache-Control: no-store`` keeps it out of the cache, ``no-cache`` asks for a fresh answer that may be kept, and
``X-Laya-Cache: force`` uses the cache for a request that is not deterministic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laya_desktop.node.records import CacheMode


def cache_mode(headers: Mapping[str, str]) -> CacheMode:
    """How the request wants to use the cache; what is stricter wins."""
    if "cache-control" not in headers and "x-laya-cache" not in headers:
        return "auto"
    directives = {part.strip().lower() for part in headers.get("cache-control", "").split(",")}
    if "no-store" in directives:
        return "no_store"
    if "no-cache" in directives or "max-age=0" in directives:
        return "refresh"
    return "force" if headers.get("x-laya-cache", "").strip().lower() == "force" else "auto"


def caller_of(headers: Mapping[str, str]) -> str:
    """A digest of the keys presented, so that callers with different keys never share an answer; no key: empty."""
    presented = f"{headers.get('authorization', '')}\0{headers.get('x-api-key', '')}"
    return "" if presented == "\0" else hashlib.sha256(presented.encode()).hexdigest()
