"""Files: what saving writes, what it refuses to overwrite, and what it leaves behind when it fails."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from laya_desktop.config import writer
from laya_desktop.config.schema import ModelConfig, NodeConfig
from laya_desktop.config.store import ConfigDocument, load_file
from laya_desktop.errors import LayaError

TEXT = """# mine
server: {host: 127.0.0.1,   port: 5292}   # aligned

models:
  # M1 is precious
  - name: m1    # do not touch
    path: 'models/one.gguf'

  # M2
  - name: m2
    path: two.gguf
    batch_size: 4
# the end
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "laya.yaml"
    path.write_text(TEXT)
    return path


def edited(config: NodeConfig, **changes: object) -> NodeConfig:
    model = config.model("m2")
    assert model is not None
    return config.with_model(ModelConfig.model_validate(model.model_dump() | changes), "m2")


def test_one_truth_only_the_edited_model_changes(file: Path) -> None:
    document = load_file(file)

    saved = document.save(edited(document.config, batch_size=8))

    assert file.read_text() == TEXT.replace("batch_size: 4", "batch_size: 8")
    assert saved == load_file(file)
    assert saved.unsaved(saved.config) == ()


def test_a_file_changed_on_disk_is_not_overwritten(file: Path) -> None:
    document = load_file(file)
    theirs = TEXT + "# theirs\n"
    file.write_text(theirs)

    assert document.changed_on_disk()
    with pytest.raises(LayaError) as caught:
        document.save(edited(document.config, batch_size=8))

    assert (caught.value.code, caught.value.status) == ("changed_on_disk", 409)
    assert file.read_text() == theirs


def test_a_change_of_the_same_length_and_time_is_still_noticed_when_saving(file: Path) -> None:
    document = load_file(file)
    before = file.stat()
    file.write_text(TEXT.replace("mine", "ours"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    with pytest.raises(LayaError, match="has changed since it was read"):
        document.save(edited(document.config, batch_size=8))


def test_overwriting_keeps_what_was_there_as_a_backup(file: Path) -> None:
    document = load_file(file)
    file.write_text("# theirs\n")

    document.save(edited(document.config, batch_size=8), overwrite=True)

    assert load_file(file).config == edited(document.config, batch_size=8)
    assert [p.read_text() for p in (file.parent / "backups").iterdir()] == ["# theirs\n"]


def test_a_touched_file_has_not_changed(file: Path) -> None:
    document = load_file(file)
    os.utime(file, ns=(1, 1))

    assert not document.changed_on_disk()


def test_a_deleted_file_counts_as_changed(file: Path) -> None:
    document = load_file(file)
    file.unlink()

    assert document.changed_on_disk()
    with pytest.raises(LayaError, match="is gone since it was read"):
        document.save(document.config)


def test_the_five_last_contents_are_kept(file: Path) -> None:
    document = load_file(file)
    for size in range(5, 13):
        document = document.save(edited(document.config, batch_size=size))

    kept = sorted((file.parent / "backups").iterdir())

    assert [load_file(p).config.models[1].batch_size for p in kept] == [7, 8, 9, 10, 11]


def test_nothing_is_written_where_nothing_changed(file: Path) -> None:
    document = load_file(file)
    before = file.stat()

    document.save(document.config)

    assert file.stat().st_ino == before.st_ino
    assert not (file.parent / "backups").exists()


def test_permission_bits_are_kept_and_a_new_file_is_private(file: Path) -> None:
    file.chmod(0o664)
    document = load_file(file)

    document.save(edited(document.config, batch_size=8))
    document.save(document.config, file.with_name("other.yaml"))

    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    assert stat.S_IMODE(file.with_name("other.yaml").stat().st_mode) == 0o600


def test_a_symbolic_link_is_followed(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "laya.yaml"
    link.parent.mkdir()
    link.symlink_to(file)
    document = load_file(link)

    document.save(edited(document.config, batch_size=8))

    assert link.is_symlink()
    assert load_file(file).config == edited(document.config, batch_size=8)


def test_line_ends_and_a_byte_order_mark_are_kept(file: Path) -> None:
    original = "\ufeff" + TEXT.replace("\n", "\r\n")
    file.write_bytes(original.encode())
    document = load_file(file)

    document.save(edited(document.config, batch_size=8, preload=True))

    content = file.read_bytes().decode()
    assert content == original.replace("batch_size: 4\r\n", "batch_size: 8\r\n    preload: true\r\n")


def test_a_file_without_a_last_line_end_can_be_added_to(file: Path) -> None:
    file.write_text("models: [{name: m2, path: a.gguf}]")
    document = load_file(file)
    config = document.config.model_copy(update={"server": document.config.server.model_copy(update={"port": 1})})

    document.save(config)

    assert file.read_text() == "models: [{name: m2, path: a.gguf}]\nserver:\n  port: 1\n"


def test_saving_in_another_folder_keeps_relative_paths_pointing_at_the_same_files(file: Path, tmp_path: Path) -> None:
    document = load_file(file)
    (tmp_path / "elsewhere").mkdir()

    saved = document.save(document.config, tmp_path / "elsewhere" / "copy.yaml")

    assert saved.config.models[0].path == tmp_path / "models" / "one.gguf"
    assert "# M1 is precious" in saved.text
    assert load_file(saved.path or file).config == saved.config
    assert file.read_text() == TEXT


def test_another_file_is_not_overwritten_unasked(file: Path) -> None:
    other = file.with_name("other.yaml")
    other.write_text("# theirs\n")
    document = load_file(file)

    with pytest.raises(LayaError) as caught:
        document.save(document.config, other)
    document.save(document.config, other, overwrite=True)

    assert caught.value.code == "file_exists"
    assert load_file(other).config == document.config


def test_a_configuration_without_a_file_asks_for_one(tmp_path: Path) -> None:
    config = NodeConfig(models=(ModelConfig.model_validate({"name": "a", "path": "a"}),))

    with pytest.raises(LayaError) as caught:
        ConfigDocument().save(config)
    saved = ConfigDocument().save(config, tmp_path / "new.yaml")

    assert caught.value.code == "no_file_name"
    assert saved.text == "models:\n  - name: a\n    path: a\n"


def test_a_text_of_comments_only_keeps_them(file: Path) -> None:
    file.write_text("# to be filled in\n")
    document = load_file(file)

    saved = document.save(NodeConfig(models=(ModelConfig.model_validate({"name": "a", "path": "a"}),)))

    assert saved.text == "# to be filled in\nmodels:\n  - name: a\n    path: a\n"


def test_the_diff_shows_the_changed_lines(file: Path) -> None:
    document = load_file(file)

    lines = document.diff(edited(document.config, batch_size=8)).splitlines()

    assert [line for line in lines if line[0] in "+-"] == [
        "--- laya.yaml",
        "+++ laya.yaml (unsaved)",
        "-    batch_size: 4",
        "+    batch_size: 8",
    ]
    assert document.diff(document.config) == ""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_write_that_fails_changes_nothing_and_says_what_to_do(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(_handle: int) -> None:
        raise OSError(number, os.strerror(number))

    document = load_file(file)
    monkeypatch.setattr(writer.os, "fsync", fail)

    with pytest.raises(LayaError) as caught:
        document.save(edited(document.config, batch_size=8))

    assert caught.value.code == "save_failed"
    assert os.strerror(number) in caught.value.message
    assert "save to another place" in (caught.value.hint or "").lower()
    assert file.read_text() == TEXT
    assert [p for p in file.parent.rglob("*") if p.is_file()] == [file]


def test_a_missing_folder_is_named(file: Path, tmp_path: Path) -> None:
    document = load_file(file)

    with pytest.raises(LayaError, match="Create the folder first"):
        document.save(document.config, tmp_path / "no" / "such" / "x.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_write_protected_file_is_respected(file: Path) -> None:
    file.chmod(0o444)
    document = load_file(file)

    with pytest.raises(LayaError, match="write-protected"):
        document.save(edited(document.config, batch_size=8))


def test_what_does_not_read_back_equal_is_not_written(file: Path) -> None:
    twisted = ModelConfig.model_construct(**(ModelConfig(name="m3", path=Path("x")).__dict__ | {"name": "a\x00b"}))
    document = load_file(file)
    config = document.config.model_copy(update={"models": (*document.config.models, twisted)})

    with pytest.raises(LayaError):
        document.save(config)

    assert file.read_text() == TEXT
