"""Build the packages that users install: a one-folder application (PyInstaller), and on Linux a .deb. Standard library.

    python packaging/package.py app       dist/laya-desktop/, with the demo model; on macOS dist/Laya Desktop.app
    python packaging/package.py deb       dist/laya-desktop_VERSION_ARCH.deb, from the application
    python packaging/package.py test      what was built starts, answers and quits

llama.cpp is built for any processor of the last ten years (on x86: AVX2, FMA, F16C and BMI2), not for the one that
builds; pip keeps that wheel in a cache of its own, so that it never takes the place of one built for this processor.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import bootstrap

ROOT = bootstrap.ROOT
BUILD, DIST = ROOT / "build" / "package", ROOT / "dist"
VENV = BUILD / "venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
APP = DIST / "laya-desktop"
SPEC = ROOT / "packaging" / "laya-desktop.spec"
PYINSTALLER = "pyinstaller>=6.11,<7"
_PORTABLE = ("-DGGML_NATIVE=OFF",)


def main() -> int:
    """Do one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("app", "deb", "test"))
    step = parser.parse_args().step
    started_s = time.monotonic()
    if step == "app":
        build_app()
    elif step == "deb":
        subprocess.run([sys.executable, ROOT / "packaging" / "linux" / "deb.py"], check=True)
    else:
        subprocess.run([sys.executable, ROOT / "packaging" / "try_package.py", APP], check=True)
    _say(f"{step}: {time.monotonic() - started_s:.0f} s")
    return 0


def version() -> str:
    """The product's version, from its package."""
    text = (ROOT / "laya_desktop" / "__init__.py").read_text(encoding="utf-8")
    return text.split('__version__ = "', 1)[1].split('"', 1)[0]


def build_app() -> None:
    """The environment of the build, then PyInstaller."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    llama = next(n for n in project["dependencies"] if n.startswith("llama-cpp-python"))
    rest = [n for n in project["dependencies"] if n != llama]
    _pip("install", "--upgrade", "pip>=24")
    _pip("install", *rest, PYINSTALLER)
    _pip("install", "--no-deps", bootstrap.DEMO_MODEL)
    env = bootstrap._build_env()  # noqa: SLF001
    env["CMAKE_ARGS"] = " ".join([env["CMAKE_ARGS"], *_PORTABLE])
    _say("building llama.cpp for other people's processors (minutes the first time)")
    _pip("install", llama, env=env | {"PIP_CACHE_DIR": str(_cache())})
    subprocess.run([PYTHON, ROOT / "packaging" / "icons.py", BUILD / "icons"], check=True)
    if sys.platform == "win32":
        _version_resource()
    shutil.rmtree(APP, ignore_errors=True)
    command = [PYTHON, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"]
    command += ["--distpath", DIST, "--workpath", BUILD / "work", SPEC]
    subprocess.run(command, check=True, cwd=ROOT)
    _say(f"{APP}: {_size(APP) / 1e6:.0f} MB")


def _version_resource() -> None:
    """What Windows shows under the executable's properties."""
    numbers = ", ".join([*version().split(".")[:3], "0"])
    strings = {"CompanyName": "Laya", "FileDescription": "Laya Desktop", "ProductName": "Laya Desktop"}
    strings |= {"FileVersion": version(), "ProductVersion": version(), "OriginalFilename": "laya-desktop.exe"}
    table = ", ".join(f"StringStruct({key!r}, {value!r})" for key, value in strings.items())
    text = (
        f"VSVersionInfo(ffi=FixedFileInfo(filevers=({numbers}), prodvers=({numbers})), "
        f"kids=[StringFileInfo([StringTable('040904B0', [{table}])]), "
        "VarFileInfo([VarStruct('Translation', [1033, 1200])])])"
    )
    (BUILD / "version.txt").write_text(text, encoding="utf-8")


def _cache() -> Path:
    """Where pip keeps portable wheels, beside its usual cache."""
    found = subprocess.run([PYTHON, "-m", "pip", "cache", "dir"], check=True, capture_output=True, text=True)
    return Path(found.stdout.strip()).parent / f"laya-portable-{platform.machine().lower()}"


def _pip(*args: str, env: dict[str, str] | None = None) -> None:
    subprocess.run([PYTHON, "-m", "pip", args[0], "-q", *args[1:]], check=True, env=env)


def _size(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink())


def _say(text: str) -> None:
    print(f"laya: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
