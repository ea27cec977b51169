"""Every format gives the same run, and every bad file one clear line."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

import tightaudit as ta
from tightaudit.evidence import ids
from tightaudit.evidence.reading import delimited
from tightaudit.evidence.reading.columns import Selection
from tightaudit.evidence.reading.delimited import read_delimited
from tightaudit.evidence.reading.lines import LONGEST_LINE

SCORES = [2.5, -1.0, 0.25, float("inf")]
MEMBERS = [True, False, False, True]
IDS = ["a", "b", "ç", "d e"]
FORMATS = ["csv", "tsv", "jsonl", "parquet", "npz", "run.npz"]


def write(folder: Path, kind: str) -> Path:
    path = folder / f"scores.{kind}"
    if kind in ("csv", "tsv"):
        delimiter = "," if kind == "csv" else "\t"
        rows = [("id", "score", "member"), *zip(IDS, SCORES, map(int, MEMBERS), strict=True)]
        path.write_text("\n".join(delimiter.join(map(str, row)) for row in rows), encoding="utf-8")
    elif kind == "jsonl":
        objects = [{"id": i, "score": s, "member": m} for i, s, m in zip(IDS, SCORES, MEMBERS, strict=True)]
        path.write_text("\n".join(map(json.dumps, objects)) + "\n\n", encoding="utf-8")
    elif kind == "parquet":
        parquet.write_table(pyarrow.table({"id": IDS, "score": SCORES, "member": MEMBERS}), path)
    elif kind == "npz":
        np.savez(path, score=SCORES, member=MEMBERS, id=IDS)
    else:
        ta.Run(np.array(SCORES), np.array(MEMBERS), np.array(IDS)).save(path)
    return path


def same(run: ta.Run) -> None:
    assert run.scores.tolist() == SCORES
    assert run.members.tolist() == MEMBERS
    assert run.ids is not None
    assert run.ids.tolist() == IDS


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_run(tmp_path: Path, kind: str) -> None:
    same(ta.read_run(write(tmp_path, kind)))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npz"])
def test_standard_input_is_recognised(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(write(tmp_path, kind).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    run = ta.read_run("-")
    same(run)
    assert run.source == "standard input"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_format_can_be_named(tmp_path: Path, kind: str) -> None:
    renamed = write(tmp_path, kind).rename(tmp_path / "scores.dat")
    same(ta.read_run(renamed, file_format=kind))


@pytest.mark.parametrize("library", [pandas, polars])
def test_frames(library: Any) -> None:
    frame = library.DataFrame({"id": IDS, "loss": SCORES, "in": MEMBERS})
    report = ta.audit(frame, delta=1e-5, columns=ta.Columns("loss", "in"))
    same(report.run)
    with pytest.raises(ta.InputError, match="expected a column score or scores"):
        ta.audit(frame, delta=1e-5)


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("score,loss,in\n1,2.5,true\n1,-1,FALSE\n")
    run = ta.read_run(path, columns=ta.Columns("loss", "in"))
    assert (run.scores.tolist(), run.members.tolist(), run.ids) == ([2.5, -1.0], [True, False], None)


@pytest.mark.parametrize("other", ["csv", "parquet"])
def test_two_files_are_joined_by_id(tmp_path: Path, other: str) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("id,score\n3,0.3\n1,0.1\n2,0.2\n")
    if other == "csv":
        members = tmp_path / "members.csv"
        members.write_text("member,id\n1,1\n0,2\n0,3\n")
    else:
        members = tmp_path / "members.parquet"
        parquet.write_table(pyarrow.table({"id": [1, 2, 3], "member": [1, 0, 0]}), members)
    run = ta.read_run(scores, members=members)
    assert run.scores.tolist() == [0.3, 0.1, 0.2]
    assert run.members.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            "id,member\n1,1\n",
            "scores.csv, the ids: found 2, expected an id that is also in members.csv, the ids",
        ),
        ("id,member\n1,1\n2,0\n3,1\n", "members.csv, the ids: found 3, expected an id with a score"),
        ("id,member\n1,1\n1,0\n", "members.csv, the ids: found 1, expected each id once"),
        (
            "member\n1\n1\n",
            "members.csv: found columns member, expected a column id or ids; name yours with --id-column, "
            "in Python Columns(id=…)",
        ),
    ],
)
def test_joins_that_do_not_match(tmp_path: Path, members: str, message: str) -> None:
    (tmp_path / "scores.csv").write_text("id,score\n1,0.1\n2,0.2\n")
    (tmp_path / "members.csv").write_text(members)
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(tmp_path / "scores.csv", members=tmp_path / "members.csv")
    assert str(caught.value) == message


HEAD = "id,score,member\n"
MEMBERS_OF_MANY = np.arange(3 * 10**6) % 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "found no columns, expected a column score or scores"),
        (HEAD, "found no rows, expected at least one canary"),
        (HEAD + "a,nan,1\n", "line 2: found nan, expected a number for the score"),
        (HEAD + "a,,1\n", "line 2: found nothing, expected a number for the score"),
        (HEAD + "a,1_0,1\n", "line 2: found 1_0, expected a number for the score"),
        (HEAD + "a,1,1\nb,one,1\n", "line 3: found one, expected a number for the score"),
        (HEAD + "a,1,2\n", "line 2: found 2, expected 0 or 1 for the member"),
        (HEAD + "a,1,\n", "line 2: found nothing, expected 0 or 1 for the member"),
        (HEAD + "a,1,1\na,2,0\n", "the ids: found a, expected each id once"),
        (HEAD + "a,1\n", "line 2: found 2 values, expected 3, one per column"),
        (HEAD + "a,1,1\n" + "b" * 2000 + ",2,0\n", "bbb..., expected an id of at most 1000 characters"),
        ("a,b,<script>\n1,2,3\n", "found columns a, b, <script>, expected a column score or scores"),
        ("score,scores,member\n1,2,1\n", "expected one column for the scores; name it"),
        ("score,score,member\n1,2,1\n", "expected one column for the scores; name it"),
        (HEAD + '"a,1,1\n', "unexpected end of data"),
        (HEAD + "a,1\0,1\n", "line 2: found a zero byte, expected text"),
        ("a\x1b[2Jb,score\n", "found columns a\ufffd[2Jb, score, expected a column member or members"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(content)
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(path)
    assert str(caught.value).startswith("scores.csv")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"score": 1, "member": 2}', "found 2, expected 0 or 1 for the member"),
        ('{"score": "1", "member": 1}', 'found "1", expected a number for the score'),
        ('{"score": true, "member": 1}', "found true, expected a number for the score"),
        ('{"score": NaN, "member": 1}', "found NaN, expected a number for the score"),
        ('{"score": 1}', "expected a column member or members"),
        ("[1, 2]", "expected one JSON object per line"),
        ('{"score": 1', "expected one JSON object per line"),
        ("[" * 100_000, "expected one JSON object per line"),
        ('{"score": 1, "member": 1}\n{"score": 2}', "line 2: "),
        ('{"score": 1, "member": 1, "id": 1}\n{"score": 2, "member": 1, "id": "b"}', "integers only"),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(line)
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(path)
    assert message in str(caught.value)


def test_a_very_long_line_is_refused_without_being_read() -> None:
    class Endless(io.RawIOBase):
        asked = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = b"x" * len(buffer)
            self.asked += len(buffer)
            return len(buffer)

    source = Endless()
    with pytest.raises(ta.InputError, match="a very long line"):
        read_delimited(io.BufferedReader(source), "endless.csv", Selection())
    assert source.asked < 2 * LONGEST_LINE


def test_a_column_of_texts_is_read_in_blocks_of_which_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "_BLOCK", 3)
    path = tmp_path / "scores.csv"
    for count in (1, 3, 4, 6, 7):
        ids = [f"{'x' * at}{at}" for at in range(count)]
        path.write_text(HEAD + "".join(f"{name},{at},{at % 2}\n" for at, name in enumerate(ids)))
        run = ta.read_run(path)
        assert run.ids is not None
        assert list(run.ids) == ids


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(HEAD.encode() + b"\xff\xfe,1,1\n")
    with pytest.raises(ta.InputError, match=r"line 2: .*expected text in UTF-8"):
        ta.read_run(path)


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(b"\xef\xbb\xbfscore,member\r\n1,1\r\n2,0\r\n\r\n")
    assert ta.read_run(path).scores.tolist() == [1.0, 2.0]


def test_truncated_and_foreign_files(tmp_path: Path) -> None:
    for kind in ("parquet", "npz", "run.npz"):
        path = write(tmp_path, kind)
        whole = path.read_bytes()
        for content in (whole[: len(whole) // 2], whole[:-7], b"", b"PAR1PK\x03\x04"):
            path.write_bytes(content)
            with pytest.raises(ta.InputError) as caught:
                ta.read_run(path)
            assert str(caught.value).count("\n") == 0


def test_parquet_of_the_wrong_types(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    for scores, members, message in (
        (["1", "2"], [1, 0], "values of type"),
        ([1.0, None], [1, 0], "1 missing values"),
        ([1.0, float("nan")], [1, 0], "found nan"),
        ([1.0, 2.0], [1, 2], "found 2.0, expected 0 or 1"),
    ):
        parquet.write_table(pyarrow.table({"score": scores, "member": members}), path)
        with pytest.raises(ta.InputError, match=message):
            ta.read_run(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("unpickled",))

    for name in ("score", "header"):
        path = tmp_path / f"{name}.npz"
        arrays: dict[str, Any] = {"score": SCORES, "member": MEMBERS, name: np.array([Bomb()], dtype=object)}
        np.savez(path, **arrays)
        with pytest.raises(ta.InputError, match="pickled objects are never loaded"):
            ta.read_run(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "found no such file"),
        (".", "found a directory, expected a file"),
        ("scores.xlsx", "found the ending .xlsx"),
    ],
)
def test_files_that_are_not_there(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ta.InputError, match=message):
        ta.read_run(tmp_path / name)


def test_a_missing_reader_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ta.InputError, match=r"pip install 'tightaudit\[io\]'"):
        ta.read_run(path)


def test_hostile_archives(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("score", b"1,2,3")
        archive.writestr("member", b"1,0,1")
    with pytest.raises(ta.InputError, match="a column score"):
        ta.read_run(path)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"
    header += b" " * (118 - 1 - len(header)) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("score.npy", "member.npy"):
            archive.writestr(name, b"\x93NUMPY\x01\x00\x76\x00" + header)
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(path)
    assert "\n" not in str(caught.value)


def test_arrays_of_the_wrong_shape(tmp_path: Path) -> None:
    scores, members = tmp_path / "scores.npz", tmp_path / "members.npz"
    np.savez(scores, score=[1.0, 2.0], id=["a", "b"])
    np.savez(members, member=[[True, False]], id=["a", "b"])
    with pytest.raises(ta.InputError, match=r"members\.npz, the members: found an array of shape"):
        ta.read_run(scores, members=members)


def test_what_the_coins_maker_knows_survives_a_join(tmp_path: Path) -> None:
    scores, coins = tmp_path / "scores.csv", tmp_path / "coins.npz"
    scores.write_text("id,score\nb,0.3\na,0.1\n")
    ta.Run(np.zeros(2), np.array([True, False]), np.array(["a", "b"]), independent="own noise").save(coins)
    run = ta.read_run(scores, members=coins)
    assert (run.independent, run.members.tolist()) == ("own noise", [False, True])


def test_frames_of_other_kinds() -> None:
    table = pyarrow.table({"score": SCORES, "member": MEMBERS, "id": IDS})
    same(ta.audit(table, delta=1e-5).run)
    with pytest.raises(ta.InputError):
        ta.audit(polars.DataFrame({"score": SCORES, "member": MEMBERS}).lazy(), delta=1e-5)
    numbered = pandas.DataFrame({0: SCORES, 1: MEMBERS})
    assert ta.audit(numbered, delta=1e-5, columns=ta.Columns("0", "1")).run.n == 4


@pytest.mark.parametrize("path", [None, 0, b"scores.csv", "a\0.csv"])
def test_names_that_are_none(path: Any) -> None:
    with pytest.raises(ta.InputError, match="path="):
        ta.read_run(path)


def test_standard_input_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(write(tmp_path, "csv").read_bytes())))
    ta.read_run("-")
    assert not sys.stdin.closed


def test_what_the_coins_maker_does_not_know_is_not_taken_from_the_scores(tmp_path: Path) -> None:
    scores, coins = tmp_path / "scores.npz", tmp_path / "coins.npz"
    ids = np.array(["a", "b"])
    ta.Run(np.array([0.3, 0.1]), np.array([True, False]), ids, claim=ta.Gaussian(1.0), threshold=0.2).save(
        scores
    )
    ta.Run(np.zeros(2), np.array([True, False]), ids).save(coins)
    run = ta.read_run(scores, members=coins)
    assert (run.claim, run.threshold) == (None, None)


def test_a_misspelled_name_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("score,member\n1,0\n")
    with pytest.raises(ta.InputError, match=r"did you mean scores\.csv\?"):
        ta.read_run(tmp_path / "score.csv")


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_line_of_names_tells_the_delimiter(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(f"score{sign}member\n1.5{sign}1\n-1{sign}0\n")
    assert ta.read_run(path).scores.tolist() == [1.5, -1.0]


def test_a_comma_delimits_where_there_is_one(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("score,member,a;b\n1.5,1,x;y\n")
    assert ta.read_run(path).n == 1


def test_unknown_columns_come_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("Score,member\n1.5,1\n")
    with pytest.raises(ta.InputError) as caught:
        ta.read_run(path)
    for part in ("--score-column", "Columns(score=…)", "did you mean Score?"):
        assert part in str(caught.value)


def _npz(path: Path, **raw: bytes) -> None:
    """An archive whose arrays are scores and members, unless their bytes are given."""
    with zipfile.ZipFile(path, "w") as archive:
        arrays: dict[str, Any] = {"score": SCORES, "member": MEMBERS}
        for name, values in arrays.items():
            file = io.BytesIO()
            np.save(file, values)
            archive.writestr(f"{name}.npy", raw.get(name, file.getvalue()))


def _with_header(header: str) -> bytes:
    text = header.replace("SIZE", str(len(SCORES))).ljust(117) + "\n"
    return (
        b"\x93NUMPY\x01\x00"
        + len(text).to_bytes(2, "little")
        + text.encode("latin1")
        + bytes(8 * len(SCORES))
    )


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': None, }",
        "{'descr': [('a', 'b')], 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '|V8', 'fortran_order': False, 'shape': (SIZE,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (SIZE,), }",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (SIZE,), }",
        "{'descr': 'zz', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': " + "(" * 90,
        "\xa0\x00",
        "[]",
    ],
)
def test_broken_headers_of_arrays(tmp_path: Path, header: str) -> None:
    path = tmp_path / "scores.npz"
    _npz(path, score=_with_header(header))
    with pytest.raises(ta.InputError, match=r"scores\.npz"):
        ta.read_run(path)


def test_an_array_written_by_python_2_is_read_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    _npz(path, score=_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (SIZEL,), }"))
    assert ta.read_run(path).n == len(SCORES)


def test_encrypted_and_unusual_compressions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    _npz(path)
    whole = path.read_bytes()
    # The flag of encryption, in the entry's own header and in the list at the end.
    encrypted = bytearray(whole)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        encrypted[whole.index(mark) + offset] |= 1
    path.write_bytes(bytes(encrypted))
    with pytest.raises(ta.InputError, match="not encrypted"):
        ta.read_run(path)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_LZMA) as archive:
        archive.writestr("score.npy", b"scores")
        archive.writestr("member.npy", b"members")
    path.write_bytes(path.read_bytes().replace(b"\x5d\x00\x00", b"\xff\xff\xff"))
    with pytest.raises(ta.InputError, match="as NumPy compresses"):
        ta.read_run(path)


def test_an_archive_made_to_fill_the_memory_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        with archive.open("score.npy", "w") as member:
            np.lib.format.write_array_header_1_0(
                member, {"descr": "<f8", "fortran_order": False, "shape": (40 * 2**20,)}
            )
            for _ in range(320):
                member.write(bytes(2**20))
        archive.writestr("member.npy", b"")
    with pytest.raises(ta.InputError, match="bytes that grow to"):
        ta.read_run(path)


def test_many_arrays_that_fill_the_memory_together_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    coins = np.zeros(10**6, dtype=np.int8)
    parts = {f"transcript.{part}": np.zeros(8 * 2**20, dtype=np.uint8) for part in range(8)}
    np.savez_compressed(path, score=coins, member=coins, **parts)  # type: ignore[arg-type]
    with pytest.raises(ta.InputError, match="bytes that grow to"):
        ta.read_run(path)


def test_coins_in_order_shrink_very_much_and_are_read(tmp_path: Path) -> None:
    path, members = tmp_path / "scores.npz", np.sort(MEMBERS_OF_MANY)
    np.savez_compressed(path, score=np.random.default_rng(0).random(members.size), member=members)
    assert ta.read_run(path).n == members.size


@pytest.mark.parametrize(
    "columns",
    [
        {"score": np.zeros(6 * 10**6), "member": np.zeros(6 * 10**6, dtype=bool)},
        {"score": np.zeros(10**5), "member": np.zeros(10**5, dtype=bool), "id": ["x" * 1000] * 10**5},
        {"score": np.zeros(10**5), "member": np.zeros(10**5, dtype=bool), "run": ["x" * 1000] * 10**5},
    ],
    ids=["rows", "ids", "runs"],
)
def test_parquet_made_to_fill_the_memory_is_refused(tmp_path: Path, columns: dict[str, Any]) -> None:
    path = tmp_path / "scores.parquet"
    parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    assert path.stat().st_size < 200_000
    with pytest.raises(ta.InputError, match="bytes that grow to"):
        ta.read_run(path)


def test_one_long_id_does_not_make_room_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_LARGEST_ARRAY", 2**20)
    path = tmp_path / "scores.csv"
    path.write_text(HEAD + "x" * 1000 + ",0,0\n" + "".join(f"{at},{at},1\n" for at in range(1000)))
    with pytest.raises(ta.InputError, match="the ids: found one of 1000 characters, expected at most 261"):
        ta.read_run(path)
    with pytest.raises(ta.InputError, match="one of 1000 characters"):
        ta.Run(
            np.zeros(1000), np.zeros(1000, dtype=bool), np.array(["x" * 1000, *map(str, range(999))], object)
        )
