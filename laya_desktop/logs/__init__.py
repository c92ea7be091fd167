"""Logging for the whole product: ``setup`` once in the composition root, ``logging.getLogger(__name__)`` elsewhere.

Lines go from any thread through a bounded queue to one writer thread, which feeds the ring of the Logs page, the
console and the rotating files. Prompts and answers are never logged here, nor anywhere else.
"""

from laya_desktop.logs.files import Announce, LogFiles
from laya_desktop.logs.pipeline import LogHandle, setup
from laya_desktop.logs.ring import LogLine, LogRing

__all__ = ["Announce", "LogFiles", "LogHandle", "LogLine", "LogRing", "setup"]
