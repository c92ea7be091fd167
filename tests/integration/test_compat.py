"""Other people's clients, unchanged, against a whole node with a fake model; those not installed are skipped."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import pytest

from benchmarks import compat
from tests.helpers.session import running

CONFIG = """
    version: 1
    server: {port: 0}
    models:
      - {name: quick, path: "fake:tokens=12", engine: fake, batch_size: 2}
"""


@pytest.mark.parametrize("package", compat.PYTHON_CLIENTS)
def test_a_client_gets_whole_and_streamed_answers(package, tmp_path, monkeypatch):
    module, program = compat.PYTHON_CLIENTS[package]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{package} is not installed; benchmarks/compat.py installs it elsewhere and runs this")
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "node.yaml", CONFIG) as node:
        result = compat.run_python(sys.executable, program, node.url, "quick", tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_npm_client_gets_whole_and_streamed_answers(tmp_path, monkeypatch):
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed; it brings the client")
    try:
        folder = compat.install_npm(tmp_path / "npm")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm could not install the package: {error}")
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "node.yaml", CONFIG) as node:
        result = compat.run_node(folder, node.url, "quick")
    assert result.returncode == 0, result.stderr
