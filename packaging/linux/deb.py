"""Make a Debian package of dist/laya-desktop. Standard library, and Debian's dpkg-deb."""

from __future__ import annotations

import datetime as dt
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import bootstrap  # noqa: E402
import package  # noqa: E402

TREE = package.BUILD / "deb"
ID = "io.github.laya.desktop"
# Qt itself is in the application; these are the libraries of the system, by the names of Debian 12 and Ubuntu 22.04.
DEPENDS = ("libc6 (>= 2.34)", "libgomp1", "libstdc++6", *sorted({*bootstrap.QT_LIBRARIES.values(), "libxkbcommon0"}))
CONTROL = """\
Package: laya-desktop
Version: {version}
Section: science
Priority: optional
Architecture: {architecture}
Maintainer: Laya <laya@localhost>
Installed-Size: {size_kib}
Depends: {depends}
Recommends: gnome-keyring | kwalletmanager, fonts-noto-cjk
Description: control panel for local AI inference
 A window around a Laya node: an HTTP router and inference server for language
 models on your own machine. It edits routes and models in forms, plots latency,
 throughput and memory live, and warns before the machine is overwhelmed.
"""


def main() -> int:
    """Lay the tree out and pack it."""
    if not package.APP.is_dir():
        sys.exit("laya: build the application first: make package")
    version = package.version()
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(package.APP, TREE / "opt" / "laya-desktop", symlinks=True)
    link = TREE / "usr" / "bin" / "laya-desktop"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../opt/laya-desktop/laya-desktop")
    share = TREE / "usr" / "share"
    _copy(HERE / "laya-desktop.desktop", share / "applications")
    _copy(bootstrap.ROOT / "resources" / "laya-desktop.svg", share / "icons/hicolor/scalable/apps")
    for icon in sorted((package.BUILD / "icons").glob("laya-desktop-*.png")):
        size = icon.stem.rpartition("-")[2]
        _copy(icon, share / f"icons/hicolor/{size}x{size}/apps", "laya-desktop.png")
    metainfo = (HERE / f"{ID}.metainfo.xml").read_text(encoding="utf-8")
    metainfo = metainfo.replace("@VERSION@", version).replace("@DATE@", _date())
    _write(share / "metainfo" / f"{ID}.metainfo.xml", metainfo.encode())
    manual = gzip.compress((HERE / "laya-desktop.1").read_bytes(), mtime=0)
    _write(share / "man" / "man1" / "laya-desktop.1.gz", manual)
    for name in ("LICENSE", "packaging/NOTICE", "CHANGELOG.md"):
        _copy(bootstrap.ROOT / name, share / "doc" / "laya-desktop")
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
    control = CONTROL.format(
        version=version,
        architecture=architecture.stdout.strip(),
        size_kib=sum(f.stat().st_size for f in TREE.rglob("*") if f.is_file() and not f.is_symlink()) // 1024,
        depends=", ".join(DEPENDS),
    )
    _write(TREE / "DEBIAN" / "control", control.encode())
    for path in TREE.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    target = package.DIST / f"laya-desktop_{version}_{architecture.stdout.strip()}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", TREE, target], check=True)
    print(f"laya: {target}: {target.stat().st_size / 1e6:.0f} MB", file=sys.stderr)
    return 0


def _copy(source: Path, folder: Path, name: str | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / (name or source.name))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _date() -> str:
    """The day of the last commit, so that the same sources make the same file; today outside of git."""
    found = subprocess.run(
        ["git", "log", "-1", "--format=%cs"], cwd=bootstrap.ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or dt.datetime.now(dt.UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
