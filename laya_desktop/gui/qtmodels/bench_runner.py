"""One benchmark or Tune at a time, in the helper process. Qt main thread; Qt's own process handling, no thread of ours.

Cancelling closes the helper's input: it hangs up at once, ends the nodes it has started, and goes.
"""

from __future__ import annotations

import logging

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, QProcess, QProcessEnvironment, QTimer, Signal

from laya_desktop.bench import jobs
from laya_desktop.bench.jobs import Failed, Finished, Job, Measured, Message, Progress, Tried, Tuned
from laya_desktop.gui.i18n import tr

log = logging.getLogger(__name__)

_END_LIMIT_MS = 15_000


class BenchRunner(QObject):
    """Starts the helper and says what it says."""

    progressed = Signal(object)
    """jobs.Progress."""
    measured = Signal(object)
    """jobs.Measured: one more level."""
    tried = Signal(object)
    """Trial: one more setting of Tune."""
    finished = Signal(object)
    """BenchResult."""
    tuned = Signal(object)
    """TuneResult."""
    failed = Signal(str)
    """There is no result: why."""
    ended = Signal()
    """The helper is gone, whatever the reason; after the signals above."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None
        self._cancelled = False
        self._said_end = False
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._kill)
        app = QCoreApplication.instance()
        if app is not None:
            app.aboutToQuit.connect(self.shutdown)

    @property
    def busy(self) -> bool:
        """A job is under way."""
        return self._process is not None

    @property
    def cancelled(self) -> bool:
        """The last job was cancelled."""
        return self._cancelled

    def start(self, job: Job) -> None:
        """Begin; ignored while one is under way."""
        if self._process is not None:
            return
        self._cancelled = self._said_end = False
        process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in jobs.helper_environment().items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        process.setProcessChannelMode(QProcess.ProcessChannelMode.ForwardedErrorChannel)
        process.readyReadStandardOutput.connect(self._on_output)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        program, *arguments = jobs.helper_command()
        self._process = process
        process.start(program, arguments)
        process.write(jobs.line(job))

    def cancel(self) -> None:
        """Hang up at once; ``ended`` follows."""
        if self._process is not None and not self._cancelled:
            self._cancelled = True
            self._process.closeWriteChannel()
            self._patience.start(_END_LIMIT_MS)

    def shutdown(self) -> None:
        """The application ends: do not leave the helper behind."""
        process = self._process
        if process is not None:
            self.cancel()
            if not process.waitForFinished(5000):
                process.kill()
                process.waitForFinished(1000)

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _on_output(self) -> None:
        process = self._process
        while process is not None and process.canReadLine():
            data = bytes(process.readLine().data())
            try:
                self._tell(jobs.read_message(data))
            except msgspec.DecodeError:
                log.warning("The benchmark's helper said something that cannot be read: %r", data[:200])

    def _tell(self, message: Message) -> None:
        if self._cancelled:
            return
        match message:
            case Progress():
                self.progressed.emit(message)
            case Measured():
                self.measured.emit(message)
            case Tried():
                self.tried.emit(message.trial)
            case Finished():
                self._said_end = True
                self.finished.emit(message.result)
            case Tuned():
                self._said_end = True
                self.tuned.emit(message.result)
            case Failed():
                self._said_end = True
                self.failed.emit(message.text)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart and self._process is not None:
            text = self._process.errorString()
            self._over()
            self.failed.emit(text)
            self.ended.emit()

    def _on_finished(self, code: int) -> None:
        self._on_output()
        said_end = self._said_end
        self._over()
        if not said_end and not self._cancelled:
            self.failed.emit(tr("The process that measures ended unexpectedly with exit code {code}.", code=code))
        self.ended.emit()

    def _over(self) -> None:
        self._patience.stop()
        if self._process is not None:
            self._process.deleteLater()
            self._process = None
