"""Metadata of a model, whether GGUF file or Hugging Face folder. Blocking file reads: a pool thread."""

from __future__ import annotations

from pathlib import Path

from laya_desktop.node.engines import gguf, hf_folder
from laya_desktop.node.engines.hf_folder import is_model_folder
from laya_desktop.state.snapshot import ModelFileInfo

__all__ = ["inspect", "is_model_folder"]


def inspect(path: Path) -> ModelFileInfo:
    """Metadata for people.

    Raises:
        LayaError: missing, neither form, damaged …, with status 400.
    """
    return hf_folder.inspect(path) if is_model_folder(path) else gguf.inspect(path)
