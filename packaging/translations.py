"""Collect the window's texts for Qt Linguist, and compile the translations. Standard library, and PySide6's tools.

    python packaging/translations.py            update resources/translations/*.ts and compile them
    python packaging/translations.py --check    1 where that would change a file, or a text has no translation

Texts carry no line numbers, so that moving code changes no file. English has a file for its plurals only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "resources" / "translations"
SOURCES = (*sorted((ROOT / "laya_desktop" / "gui").rglob("*.py")), ROOT / "laya_desktop" / "bench" / "advice.py")
LANGUAGES = {"zh_CN": (), "en": ("-pluralonly",)}


def tool(name: str) -> str:
    """A tool of PySide6 in this interpreter's environment."""
    return str(Path(sys.executable).parent / f"pyside6-{name}")


def update(folder: Path) -> None:
    """Bring the ``.ts`` files in the folder up to date with the sources, and compile them."""
    for language, options in LANGUAGES.items():
        ts = folder / f"laya_desktop_{language}.ts"
        places = ["-locations", "none", "-no-obsolete", "-source-language", "en", "-target-language", language]
        _run([tool("lupdate"), *map(str, SOURCES), *places, *options, "-ts", str(ts)])
        _run([tool("lrelease"), "-silent", "-nounfinished", str(ts), "-qm", str(ts.with_suffix(".qm"))])


def unfinished(ts: Path) -> list[str]:
    """Texts without a complete translation."""
    found = []
    for message in ET.parse(ts).iter("message"):  # noqa: S314 - our own file
        translation = message.find("translation")
        forms = [] if translation is None else [*translation.iter("numerusform")] or [translation]
        done = translation is not None and translation.get("type") is None and all(form.text for form in forms)
        if not done:
            found.append(message.findtext("source") or "")
    return found


def stale() -> list[str]:
    """What ``update`` would change, and what is not translated."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ts in FOLDER.glob("*.ts"):
            (folder / ts.name).write_bytes(ts.read_bytes())
        update(folder)
        problems = [
            f"{f.name} is not current: run make translations"
            for f in sorted(folder.iterdir())
            if not (FOLDER / f.name).exists() or f.read_bytes() != (FOLDER / f.name).read_bytes()
        ]
        for ts in sorted(folder.glob("*.ts")):
            problems += [f"{ts.name}: not translated: {text!r}" for text in unfinished(ts)]
    return problems


def main() -> int:
    """Update, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        problems = stale()
        print("\n".join(problems))
        return int(bool(problems))
    FOLDER.mkdir(parents=True, exist_ok=True)
    update(FOLDER)
    for ts in sorted(FOLDER.glob("*.ts")):
        for text in unfinished(ts):
            print(f"{ts.name}: not translated: {text!r}")
    return 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"laya: {Path(command[0]).name}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
