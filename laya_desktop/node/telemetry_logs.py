"""How much is written to the log folder, by the growth of its files. Telemetry's thread only."""

from __future__ import annotations

from pathlib import Path

PATTERN = "laya*.log"


class LogGrowth:
    """Adds up what the files grow by. Files are known by their number, so a rotated one is not counted anew."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] | None = None
        self._written = 0

    def written_bytes(self, folder: Path) -> int:
        """Since the first call, which counts nothing. A deleted file takes nothing back."""
        sizes = {}
        for file in folder.glob(PATTERN):
            try:
                info = file.stat()
            except FileNotFoundError:  # just rotated or deleted
                continue
            sizes[info.st_ino] = info.st_size
        if self._sizes is not None:
            self._written += sum(max(size - self._sizes.get(number, 0), 0) for number, size in sizes.items())
        self._sizes = sizes
        return self._written
