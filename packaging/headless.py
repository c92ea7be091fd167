"""Install the node without the window into an environment: for containers and servers. Standard library only.

python packaging/headless.py --python /opt/laya/bin/python
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib

import bootstrap

WINDOW = ("pyside6", "pyqtgraph")
"""Beginnings of the dependencies that only the window has."""


def needs() -> list[str]:
    """What the node depends on."""
    project = tomllib.loads((bootstrap.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [need for need in project["dependencies"] if not need.lower().startswith(WINDOW)]


def main() -> int:
    """Install."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="interpreter of the environment to install into")
    python = parser.parse_args().python
    env = bootstrap._build_env()  # noqa: SLF001
    env["CMAKE_ARGS"] += " -DGGML_NATIVE=OFF"
    pip = [python, "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *needs()], check=True, env=env)
    subprocess.run([*pip, "--no-deps", str(bootstrap.ROOT)], check=True, env=env)
    return 0


if __name__ == "__main__":
    sys.exit(main())
