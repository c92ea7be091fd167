"""Configuration saves, each killed with SIGKILL at a random moment: is the file always whole?

    python -m benchmarks.saves [--saves 10000] [--seed 1] [--folder DIR] [--json FILE]

Each save is a process of its own (forked from this one, so that 10,000 of them take minutes) that writes the next
version of a commented file; it is killed after a time drawn from 0 to about twice what a save takes. Then the file
must parse and be, byte for byte, the version before or the version after. Posix only. A kill ends a process, not the
machine: that written data reach the disk is fsync's part, which this does not test.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from laya_desktop.config.store import ConfigDocument, load_file
from laya_desktop.errors import LayaError

TEXT = "# kept\nmodels:\n  - name: m    # kept too\n    path: m.gguf\n    batch_size: 1\n" + "# filler\n" * 2000
SIZES = 256
MOST_FAULTS = 20


@dataclass
class Tally:
    """What became of the saves."""

    saves: int = 0
    killed: int = 0
    """While they were at it; the others had ended by themselves."""
    before: int = 0
    after: int = 0
    faults: list[str] = field(default_factory=list)


def version(size: int) -> str:
    """The text of the file with that ``batch_size``."""
    return TEXT.replace("batch_size: 1\n", f"batch_size: {size}\n")


def save(document: ConfigDocument, size: int) -> None:
    """What the window's Save does, in this process."""
    model = document.config.models[0]
    document.save(document.config.with_model(model.model_copy(update={"batch_size": size}), model.name))


def killed_save(document: ConfigDocument, size: int, after_s: float) -> bool:
    """One save in a child; True: it was still at it when it was killed."""
    child = os.fork()
    if child == 0:
        try:
            save(document, size)
        finally:
            os._exit(0)
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def run(path: Path, saves: int, seed: int) -> Tally:
    """All of them, one after the other, on one file."""
    path.write_text(TEXT, encoding="utf-8")
    chance, tally = random.Random(seed), Tally()
    longest_s = 1.3 * save_s(path)
    began_s = time.monotonic()
    document = load_file(path)
    while tally.saves < saves and len(tally.faults) < MOST_FAULTS:
        old = document.config.models[0].batch_size
        new = old % SIZES + 1
        killed = killed_save(document, new, chance.uniform(0, longest_s))
        longest_s *= 0.98 if not killed else 1.02  # half of them end by themselves, however busy the machine is
        tally.killed += killed
        tally.saves += 1
        try:
            document = load_file(path)
        except (LayaError, OSError) as error:
            tally.faults.append(f"save {tally.saves}: the file cannot be read: {error}")
            path.write_text(TEXT, encoding="utf-8")
            document = load_file(path)
            continue
        tally.before += document.text == version(old)
        tally.after += document.text == version(new)
        if document.text not in (version(old), version(new)):
            tally.faults.append(f"save {tally.saves}: the file is neither version {old} nor {new}")
        if tally.saves % 1000 == 0:
            print(f"{tally.saves} saves, {tally.killed} killed, {time.monotonic() - began_s:.0f} s", flush=True)
    return tally


def save_s(path: Path) -> float:
    """Seconds that an undisturbed save takes in a child, the fork included: the median of eleven."""
    taken = []
    for size in range(2, 13):
        document, began_s = load_file(path), time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                save(document, size)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        taken.append(time.monotonic() - began_s)
    return statistics.median(taken)


def leftovers(path: Path) -> tuple[int, int]:
    """Temporary files and backups in the folder after one more save, which tidies up."""
    document = load_file(path)
    save(document, document.config.models[0].batch_size % SIZES + 1)
    names = [p.name for p in path.parent.rglob("*") if p.is_file()]
    return sum(name.endswith(".laya-save") for name in names), sum(1 for _ in (path.parent / "backups").iterdir())


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; 1 where a file was broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.saves", description=__doc__.partition("\n")[0])
    parser.add_argument("--saves", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to make the temporary folder: the disk to try")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result here")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "laya.yaml"
        tally = run(path, args.saves, args.seed)
        temporary, backups = leftovers(path)
    if temporary:
        tally.faults.append(f"{temporary} temporary files were left behind")
    print(f"{tally.saves} saves, {tally.killed} killed at work: {tally.before} old versions, {tally.after} new ones, "
          f"{backups} backups kept")  # fmt: skip
    print("\n".join(tally.faults) or "the file was whole every time")
    if args.json:
        args.json.write_text(json.dumps(asdict(tally)), encoding="utf-8")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
