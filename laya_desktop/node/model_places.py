"""Where programs for local models keep them, by platform. Pure: paths are put together, nothing is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OWN = "Laya Desktop"
FOLDER = "your folders"
HUGGING_FACE = "Hugging Face"
OLLAMA = "Ollama"


@dataclass(frozen=True, slots=True)
class Place:
    """One folder to search and how: ``tree``: walk it; ``ollama`` and ``hub``: their own layouts."""

    source: str
    path: Path
    kind: Literal["tree", "ollama", "hub"] = "tree"


def places(own: Path, folders: Iterable[Path], home: Path, env: Mapping[str, str], platform: str) -> tuple[Place, ...]:
    """Every folder worth a look, most specific first; the same folder may come twice, and need not exist.

    Args:
        own: this program's folder for models.
        folders: what the configuration adds, absolute.
        home: the user's home folder.
        env: the environment; other programs' variables are honoured.
        platform: as ``sys.platform``.
    """
    cache, data, config = _bases(home, env, platform)
    hub_home = (
        Path(env["HF_HOME"]) if env.get("HF_HOME") else _xdg(env, "XDG_CACHE_HOME", home / ".cache") / "huggingface"
    )
    hub = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE")
    found = [
        Place(OWN, own),
        *(Place(FOLDER, f) for f in folders),
        Place("LM Studio", home / ".lmstudio" / "models"),
        Place("LM Studio", home / ".cache" / "lm-studio" / "models"),
        Place(
            OLLAMA, Path(env["OLLAMA_MODELS"]) if env.get("OLLAMA_MODELS") else home / ".ollama" / "models", "ollama"
        ),
        Place(HUGGING_FACE, Path(hub) if hub else hub_home / "hub", "hub"),
        Place("llama.cpp", Path(env["LLAMA_CACHE"]) if env.get("LLAMA_CACHE") else cache / "llama.cpp"),
        Place("GPT4All", data / "nomic.ai" / "GPT4All"),
        *(Place("Jan", base / "Jan" / "data" / part) for base in (config, data) for part in _JAN_FOLDERS),
        Place("Jan", home / "jan" / "models"),
        Place("Jan", home / "cortexcpp" / "models"),
    ]
    if platform.startswith("linux"):
        found.append(Place(OLLAMA, Path("/usr/share/ollama/.ollama/models"), "ollama"))
    return tuple(dict.fromkeys(found))


_JAN_FOLDERS = ("models", "llamacpp/models")


def _bases(home: Path, env: Mapping[str, str], platform: str) -> tuple[Path, Path, Path]:
    """Where programs keep caches, data and settings."""
    if platform == "darwin":
        support = home / "Library" / "Application Support"
        return home / "Library" / "Caches", support, support
    if platform == "win32":
        local = _xdg(env, "LOCALAPPDATA", home / "AppData" / "Local")
        return local, local, _xdg(env, "APPDATA", home / "AppData" / "Roaming")
    return (
        _xdg(env, "XDG_CACHE_HOME", home / ".cache"),
        _xdg(env, "XDG_DATA_HOME", home / ".local" / "share"),
        _xdg(env, "XDG_CONFIG_HOME", home / ".config"),
    )


def _xdg(env: Mapping[str, str], variable: str, default: Path) -> Path:
    return Path(env[variable]) if env.get(variable) else default
