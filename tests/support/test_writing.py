"""Files that appear only when they are complete, whatever ends the process that writes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tightaudit.support import writing
from tightaudit.support.writing import replacing, require_writable

KILLED_WHILE_IT_WRITES = """
import os, signal, sys
from tightaudit.support.writing import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the system's files without names, and as where there are none."""
    if request.param == "named":
        monkeypatch.setattr(writing, "_unnamed_file", lambda _: None)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    for content in (b"first", b"second"):
        with replacing(target) as file:
            file.write(content)
        assert target.read_bytes() == content
    with pytest.raises(ZeroDivisionError), replacing(target):
        raise ZeroDivisionError
    require_writable(target)
    require_writable(tmp_path / "other.txt")
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"second", ["report.txt"])


@pytest.mark.usefixtures("way")
def test_rights_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    with replacing(tmp_path / "ours") as file:
        file.write(b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.usefixtures("way")
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with replacing(tmp_path / "link") as file:
        file.write(b"there")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"there"


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no files without names here")
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    target.write_bytes(b"whole")
    ended = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, str(target)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"whole", ["report.txt"])
