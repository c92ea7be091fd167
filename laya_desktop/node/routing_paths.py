"""Request targets to paths that can be compared. Pure functions; any thread; never touches a request or a route.

Only one spelling of a path reaches the routing table, so that no route can be slipped past with another spelling.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_PLAIN = re.compile(r"(?:/(?!\.)[A-Za-z0-9_.~!$&'()*+,;=:@-]++)++")
_TARGET = re.compile(r"[!\"$-\[\]-~]+")
_ABSOLUTE = re.compile(r"https?://[^/?]+", re.IGNORECASE)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL_ESCAPE = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_HIDDEN_SEPARATOR = re.compile(r"%(?:2F|5C)")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalise_path(target: str) -> tuple[str, str]:
    """Path and query of a request target, in the one spelling that routes are compared in.

    ======================================  =============================================
    Target                                  Result
    ======================================  =============================================
    ``/v1/model/chat``                      as it is; letters keep their case
    ``/v1/model?a=b``                       ``/v1/model`` and the query ``a=b``, untouched
    ``/v1/m%6Fdel``, ``/a%7eb``             unreserved characters decoded: ``/v1/model``, ``/a~b``
    ``/a%2fb``                              ``/a%2Fb``: stays encoded, separates nothing; hex in capitals
    ``//v1///model``                        ``/v1/model``
    ``/v1/model/``                          ``/v1/model``: a slash at the end says nothing
    ``/a/./b/../c``, ``/a/%2e%2e/c``        ``/a/c``, ``/c``
    ``/../../a``                            ``/a``: never above the root
    ``http://host/a?q``                     ``/a`` and ``q`` (the Host header names the host)
    ``http://host``                         ``/``
    ``*``                                   ``*``: matches no route
    ``%``, ``%g1``, ``%c``                  refused: not an escape
    ``%00``, ``%0A``, ``%7f``               refused: control characters, also when sent bare
    ``/a/..%2Fb``, ``/a/%2e%5Cb``           refused: ``..`` or ``.`` beside a hidden separator
    space, ``#``, backslash, not ASCII      refused: these are sent encoded
    ``host:443``, ``a/b``, empty            refused: no path
    ======================================  =============================================

    Raises:
        ValueError: with the reason, fit to be shown in a 400 answer.
    """
    if _PLAIN.fullmatch(target):
        return target, ""
    if not _TARGET.fullmatch(target):
        raise ValueError(
            "The path has a space, a control character, '#', a backslash or a character outside ASCII. "
            "Percent-encode it."
            if target
            else "The request has no path."
        )
    absolute = _ABSOLUTE.match(target)
    if absolute is not None:
        target = target[absolute.end() :]
        if not target.startswith("/"):
            target = "/" + target
    path, _, query = target.partition("?")
    if path == "*":
        return "*", query
    if not path.startswith("/"):
        raise ValueError("The path does not start with '/'.")
    return _resolve(_decode(path)), query


def rule_path(text: str) -> str:
    """A path as people write it in a rule (``/café/my model``) in the spelling of ``normalise_path``.

    Raises:
        ValueError: with the reason.
    """
    return normalise_path(quote(text, safe="/%!\"$&'()*+,:;<=>@[]^`{|}"))[0]


def _decode(path: str) -> str:
    """Decode what needs no encoding; write the other escapes with capitals."""
    if "%" not in path:
        return path
    if _BAD_ESCAPE.search(path):
        raise ValueError("The path has a '%' without two hex digits after it. Write '%25' for a percent sign.")
    if _CONTROL_ESCAPE.search(path):
        raise ValueError("The path has an encoded control character. Remove it.")
    return _ESCAPE.sub(_unescape, path)


def _unescape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def _resolve(path: str) -> str:
    """Drop empty and dot segments."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept:
                kept.pop()
        elif segment not in {"", "."}:
            if "%" in segment and {".", ".."} & set(_HIDDEN_SEPARATOR.split(segment)):
                raise ValueError("The path has '.' or '..' beside an encoded slash or backslash. Remove it.")
            kept.append(segment)
    return "/" + "/".join(kept)
