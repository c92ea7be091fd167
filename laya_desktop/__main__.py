"""``python -m laya_desktop`` is ``laya-desktop``."""

import sys

from laya_desktop.cli import main

if __name__ == "__main__":
    sys.exit(main())
