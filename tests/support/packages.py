"""Packages with entry points, as an installer would leave them on the path."""

from __future__ import annotations

from pathlib import Path


def install(
    folder: Path, name: str, entry_points: dict[str, dict[str, str]] | str, modules: dict[str, str]
) -> Path:
    """Put modules into a folder with the metadata that names their entry points; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for module, source in modules.items():
        (folder / module).write_text(source, encoding="utf-8")
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    if not isinstance(entry_points, str):
        entry_points = "\n".join(
            f"[{group}]\n" + "\n".join(f"{entry} = {value}" for entry, value in entries.items())
            for group, entries in entry_points.items()
        )
    (information / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    return folder
