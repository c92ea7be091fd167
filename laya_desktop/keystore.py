"""Keys of upstreams by name: in the system's keyring, or in a file of the user where there is none. Any thread.

Everything here may block (a keyring may ask its user), so nobody calls it on an event loop. A key is never logged,
never part of an error, and never handed to anybody but the caller. It knows no configuration.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeVar

from laya_desktop.errors import LayaError

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVICE = "laya-desktop"
"""The keyring's name for us."""
FILE = "keys.json"
TIMEOUT_S = 15.0
"""How long a keyring may take, its user's password included."""
MAX_KEY_CHARS = 4096


class Keyring(Protocol):
    """The part of a ``keyring`` backend that is used."""

    def get_password(self, service: str, username: str) -> str | None:
        """The key, or None."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keep a key."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Forget a key."""
        ...


def find_keyring() -> Keyring | None:
    """The system's keyring, or None where there is none (a server, a container)."""
    import keyring  # slow: looks for backends
    from keyring.backends import fail, null

    try:
        found = keyring.get_keyring()
        works = not isinstance(found, fail.Keyring | null.Keyring) and found.priority > 0
    except Exception as error:  # a backend that cannot even say whether it works does not
        log.debug("No keyring: %s", type(error).__name__)
        return None
    return found if works else None


class KeyStore:
    """Where keys are kept.

    Args:
        folder: where ``keys.json`` is, or would be.
        find: looks for the keyring; called once, when the first key is asked for.
        warn: told once, in a sentence, when keys are kept in the file.
        timeout_s: how long the keyring may take.
    """

    def __init__(
        self,
        folder: Path,
        find: Callable[[], Keyring | None] = find_keyring,
        warn: Callable[[str], None] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._path = folder / FILE
        self._find = find
        self._warn = warn
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._looked = False
        self._keyring: Keyring | None = None

    def get(self, name: str) -> str | None:
        """The key of that name, None where there is none. Blocks.

        Raises:
            LayaError: the keyring is locked or does not answer, or the file is damaged.
        """
        ring = self._ring()
        if ring is not None:
            found = self._ask(lambda: ring.get_password(SERVICE, name))
            if found is not None:
                return found
        return self._read().get(name) or None

    def set(self, name: str, key: str) -> str:
        """Keep a key; returns in words where. Blocks.

        Raises:
            LayaError: not a key, or it cannot be kept.
        """
        _check_name(name)
        key = key.strip()
        if not key or len(key) > MAX_KEY_CHARS or any(not "!" <= c <= "~" for c in key):
            raise LayaError(
                "This is not a key: it is empty, or has spaces or other than plain characters.",
                hint="Give the key on one line.",
                code="bad_key",
                status=400,
            )
        ring = self._ring()
        with self._lock:
            names = self._read()
            if ring is not None:
                self._ask(lambda: ring.set_password(SERVICE, name, key))
                self._write(names | {name: None})
                return "in the system's keyring"
            self._write(names | {name: key})
            return f"in {self._path}, readable by this user only"

    def delete(self, name: str) -> bool:
        """Forget a key; False where there is none. Blocks.

        Raises:
            LayaError: the keyring is locked or does not answer, or the file is damaged.
        """
        ring = self._ring()
        with self._lock:
            names = self._read()
            held = name in names
            if ring is not None and self._ask(lambda: ring.get_password(SERVICE, name)) is not None:
                self._ask(lambda: ring.delete_password(SERVICE, name))
                held = True
            if name in names:
                self._write({k: v for k, v in names.items() if k != name})
        return held

    def names(self) -> list[str]:
        """Names of all keys kept from here, in order; a keyring cannot be asked for what others put there."""
        return sorted(self._read())

    def _ring(self) -> Keyring | None:
        with self._lock:
            if not self._looked:
                self._keyring = self._ask(self._find)
                self._looked = True
                if self._keyring is None and self._warn is not None:
                    self._warn(
                        f"This system has no keyring, so keys of upstreams are kept in {self._path}: "
                        "a file that only this user can read, but that is not encrypted."
                    )
            return self._keyring

    def _ask(self, call: Callable[[], T]) -> T:
        """Call the keyring in a thread of its own: one that waits for its user forever holds up nobody's exit."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=run, name="laya-keyring", daemon=True).start()
        try:
            return answer.result(self._timeout_s)
        except TimeoutError:
            reason = f"did not answer within {self._timeout_s:g} s"
        except Exception as error:  # backends raise whatever they like; its text may quote what it was given
            reason = f"failed ({type(error).__name__})"
        raise LayaError(
            f"The system's keyring {reason}.", hint="Unlock it and try again.", code="keyring_failed", status=502
        )

    # -- the file

    def _read(self) -> dict[str, str | None]:
        """Names and keys; None in place of a key that the keyring holds."""
        try:
            self._make_private()
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._damaged(getattr(error, "strerror", None) or "it is not JSON") from None
        keys = data.get("keys") if isinstance(data, dict) else None
        if not isinstance(keys, dict) or not all(v is None or isinstance(v, str) for v in keys.values()):
            raise self._damaged("it has no keys")
        return keys

    def _make_private(self) -> None:
        """A file that others could read was copied or edited by somebody: close it, and say so."""
        mode = self._path.stat().st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            self._path.chmod(0o600)
            log.warning("%s could be read by other users; it is private again. Consider new keys.", self._path)

    def _write(self, keys: dict[str, str | None]) -> None:
        text = json.dumps({"version": 1, "keys": keys}, indent=2, sort_keys=True) + "\n"
        temporary: Path | None = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(prefix=f".{FILE}.", dir=self._path.parent)  # made with mode 0600
            temporary = Path(name)
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            if temporary is not None:
                with suppress(OSError):
                    temporary.unlink()
            raise LayaError(
                f"{self._path} cannot be written: {error.strerror}.",
                hint="Check the folder's permissions and the disk.",
                code="keys_not_saved",
            ) from None

    def _damaged(self, reason: str) -> LayaError:
        return LayaError(
            f"{self._path} cannot be read: {reason}.",
            hint="Remove it and store the keys again with 'laya-desktop key set NAME'.",
            code="keys_damaged",
            status=502,
        )


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= 128 or name != name.strip() or not name.isprintable():
        raise LayaError(
            "A key's name has 1 to 128 characters, no control characters, and no space at its ends.",
            hint="Use the upstream's name.",
            code="bad_name",
            status=400,
        )
