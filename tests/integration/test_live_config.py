"""The configuration's file edited by others while the node runs, and what saving would change in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from laya_desktop.config.schema import RouteConfig
from laya_desktop.config.store import load_file
from laya_desktop.errors import LayaError
from laya_desktop.state.enums import ModelState
from laya_desktop.state.events import ConfigChangedOnDisk, ModelLoaded, Notice
from tests.helpers.session import Running, running
from tests.helpers.waiting import wait_for

TEXT = """
    version: 1
    server: {port: 0}
    models:
      # the first one, kept small
      - name: m1
        path: "fake:tokens=3"    # no file needed
        engine: fake
      - name: m2
        path: "fake:tokens=3"
        engine: fake
    routes:
      - name: chat
        match: {prefix: /v1/chat-here}
        target: m1
"""
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("LAYA_HOME", str(tmp_path / "home"))
    with running(tmp_path / "app.yaml", TEXT) as started:
        yield started


def edit(node: Running, old: str, new: str) -> str:
    """Change the file as another program would; returns its text."""
    text = node.file.read_text()
    assert old in text
    node.file.write_text(text.replace(old, new))
    return text.replace(old, new)


def test_a_valid_edit_from_outside_acts_at_once(node: Running) -> None:
    assert node.ask("POST", "/v1/other", CHAT)[0] == 404
    edit(node, "/v1/chat-here", "/v1/other")
    notice = node.wait_told(Notice, "applied the change made outside")
    assert (notice.severity, notice.text) == ("info", "app.yaml: applied the change made outside.")
    assert node.ask("POST", "/v1/other", CHAT)[0] == 200
    assert node.ask("POST", "/v1/chat-here", CHAT)[0] == 404
    status = node.until(lambda s: s.config_status.revision == 1).config_status
    assert (status.unsaved, status.changed_on_disk) == ((), False)
    assert not node.told(ConfigChangedOnDisk)


def test_an_invalid_edit_is_refused_with_its_line_and_the_old_table_serves(node: Running) -> None:
    edit(node, "target: m1", "target: m3")
    notice = node.wait_told(Notice, "is refused")
    assert notice.severity == "error"
    assert re.search(r"app\.yaml:14:5: routes\[0\]\.target: .*'m3'", notice.text), notice.text
    assert node.ask("POST", "/v1/chat-here", CHAT)[0] == 200
    assert node.until(lambda s: s.config_status.changed_on_disk).config_status.unsaved == ()
    with pytest.raises(LayaError) as refused:
        node.service.save_config().result(10)
    assert refused.value.code == "changed_on_disk"
    edit(node, "target: m3", "target: m2")
    node.wait_told(Notice, "applied")
    assert node.until(lambda s: not s.config_status.changed_on_disk).config.route("chat").target == "m2"


def test_with_unsaved_edits_the_user_chooses(node: Running) -> None:
    mine = RouteConfig(name="mine", match={"prefix": "/v1/mine"}, target="m2")
    node.service.apply_config(node.snapshot.config.with_route(mine)).result(10)
    theirs = edit(node, "/v1/chat-here", "/v1/theirs")
    assert node.wait_told(ConfigChangedOnDisk).path == str(node.file)
    held = node.until(lambda s: s.config_status.changed_on_disk)
    assert held.config.route("mine") is not None
    assert node.ask("POST", "/v1/theirs", CHAT)[0] == 404
    assert node.file.read_text() == theirs
    node.service.revert_config().result(10)
    assert node.ask("POST", "/v1/theirs", CHAT)[0] == 200
    assert node.until(lambda s: not s.config_status.changed_on_disk).config.route("mine") is None
    assert len(node.told(ConfigChangedOnDisk)) == 1


def test_overwriting_takes_the_users_side(node: Running) -> None:
    mine = RouteConfig(name="mine", match={"prefix": "/v1/mine"}, target="m2")
    node.service.apply_config(node.snapshot.config.with_route(mine)).result(10)
    edit(node, "/v1/chat-here", "/v1/theirs")
    node.until(lambda s: s.config_status.changed_on_disk)
    node.service.save_config(overwrite=True).result(10)
    saved = load_file(node.file).config
    node.until(lambda s: s.config == saved)
    assert node.until(lambda s: not s.config_status.changed_on_disk).config_status.unsaved == ()
    assert not node.told(Notice, "applied")


def test_an_edit_held_back_is_applied_once_the_unsaved_edits_are_undone(node: Running) -> None:
    before = node.snapshot.config
    mine = RouteConfig(name="mine", match={"prefix": "/v1/mine"}, target="m2")
    node.service.apply_config(before.with_route(mine)).result(10)
    edit(node, "/v1/chat-here", "/v1/theirs")
    node.wait_told(ConfigChangedOnDisk)
    node.service.apply_config(before).result(10)
    node.wait_told(Notice, "applied the change made outside")
    assert node.ask("POST", "/v1/theirs", CHAT)[0] == 200


def test_a_burst_of_writes_settles_on_the_last_valid_version(node: Running) -> None:
    """Case 5 of the bug reports: three writes within a second, one of them half-written."""
    node.service.load_model("m1").result(20)
    pid = node.until(lambda s: s.model("m1").pid is not None).model("m1").pid
    text = node.file.read_text()
    node.file.write_text(text.replace("/v1/chat-here", "/v1/one"))
    node.file.write_text(text[: len(text) - 12])
    node.file.write_text(text.replace("/v1/chat-here", "/v1/three"))
    node.until(lambda s: s.config.route("chat").match.prefix == "/v1/three")
    assert node.ask("POST", "/v1/three", CHAT)[0] == 200
    assert node.ask("POST", "/v1/one", CHAT)[0] == 404
    assert [m.name for m in node.snapshot.models] == ["m1", "m2"]
    assert (node.snapshot.model("m1").pid, node.snapshot.model("m1").state) == (pid, ModelState.READY)
    assert len(node.told(ModelLoaded)) == 1


def test_a_half_written_file_that_stays_is_refused_until_it_is_whole(node: Running) -> None:
    text = node.file.read_text()
    node.file.write_text(text[: text.index("    target: m1")] + "    target: [m1\n")
    refused = node.wait_told(Notice, "is refused")
    assert re.search(r"app\.yaml:\d+:\d+: ", refused.text), refused.text
    assert node.ask("POST", "/v1/chat-here", CHAT)[0] == 200
    node.file.write_text(text.replace("/v1/chat-here", "/v1/whole"))
    node.wait_told(Notice, "applied")
    assert node.ask("POST", "/v1/whole", CHAT)[0] == 200


def test_a_deleted_file_is_said_once_and_saving_writes_it_again(node: Running) -> None:
    text = node.file.read_text()
    node.file.unlink()
    gone = node.wait_told(Notice, "is gone")
    assert gone.severity == "warning"
    assert node.ask("POST", "/v1/chat-here", CHAT)[0] == 200
    node.until(lambda s: s.config_status.changed_on_disk)
    with pytest.raises(LayaError, match="is gone"):
        node.service.save_config().result(10)
    node.service.save_config(overwrite=True).result(10)
    assert node.file.read_text() == text
    node.until(lambda s: not s.config_status.changed_on_disk)
    assert len(node.told(Notice, "is gone")) == 1


def test_a_file_put_back_as_it_was_is_no_conflict(node: Running) -> None:
    text = node.file.read_text()
    node.file.unlink()
    node.wait_told(Notice, "is gone")
    node.file.write_text(text)
    node.wait_told(Notice, "again as it was read")
    assert node.until(lambda s: not s.config_status.changed_on_disk).config_status.revision == 0


def test_an_edit_to_an_address_that_is_taken_is_refused(node: Running) -> None:
    taken = int(node.netloc.rpartition(":")[2])
    with running(node.file.with_name("other.yaml"), TEXT) as other:
        edit(other, "{port: 0}", f"{{port: {taken}}}")
        refused = other.wait_told(Notice, "is refused")
        assert f"Port {taken} is taken" in refused.text
        assert other.ask("GET", "/health")[0] == 200
        assert other.snapshot.config.server.port == 0


def test_saving_an_edited_model_leaves_the_other_and_its_comments_alone(node: Running) -> None:
    """Case 6 of the bug reports: one truth."""
    before = node.file.read_text()
    config = node.snapshot.config
    changed = config.model("m2").model_copy(update={"batch_size": 3})
    node.service.apply_config(config.with_model(changed, replacing="m2")).result(10)
    diff = node.service.diff_config().result(10)
    assert [line for line in diff.splitlines() if re.match(r"[+-](?![+-])", line)] == ["+    batch_size: 3"]
    assert node.file.read_text() == before
    assert node.ask("GET", "/admin/diff")[1].decode() == diff
    node.service.save_config().result(10)
    after = node.file.read_text()
    assert after.replace("    batch_size: 3\n", "") == before
    assert node.service.diff_config().result(10) == ""
    saved = load_file(node.file).config
    node.until(lambda s: s.config == saved)


def test_after_a_restart_file_and_node_agree(node: Running) -> None:
    config = node.snapshot.config
    changed = config.model("m2").model_copy(update={"batch_size": 3})
    node.service.apply_config(config.with_model(changed, replacing="m2")).result(10)
    node.service.save_config().result(10)
    with running(node.file) as again:
        wait_for(lambda: again.snapshot.seq > 0)
        assert again.snapshot.config == node.snapshot.config
        assert again.snapshot.config.model("m2").batch_size == 3
        assert again.snapshot.config_status.unsaved == ()
