"""What the packaged executable runs: the command line, or a worker where it is started as one."""

import sys

from laya_desktop.cli import main

sys.exit(main())
