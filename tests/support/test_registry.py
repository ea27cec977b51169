"""What a package beside tightaudit can bring, and that a broken one breaks nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.packages import install

import tightaudit as ta
from tightaudit.support.registry import Registry

pytestmark = pytest.mark.xdist_group("plug-ins")

COIN_TOSSING = """
from dataclasses import dataclass
from tightaudit.extend import CLAIMS, MECHANISMS, METHODS, ApproxDP, Assumptions, Mechanism, Method

@CLAIMS.register
@dataclass(frozen=True, repr=False)
class Perfect(ApproxDP):
    name = "perfect"
    parameter_names = ()
    parameters = {}

    def __init__(self):
        super().__init__(0.0, 0.0)

@METHODS.register
@dataclass(frozen=True)
class Never(Method):
    name = "never"
    assumes = Assumptions(independent_outcomes=False, claims="all", evidence="any")
    reference = "none"

    def p_value(self, claim, evidence):
        return 1.0

@MECHANISMS.register
@dataclass(frozen=True)
class CoinTossing(Mechanism):
    name = "coin-tossing"
    independent = True
    why = "no bit is looked at"
    claim = Perfect()

    def scores(self, members, rng):
        return rng.random(members.shape)
"""
GROUPS = {
    "tightaudit.claims": {"perfect": "coin_tossing"},
    "tightaudit.methods": {"never": "coin_tossing:Never"},
    "tightaudit.mechanisms": {"coin-tossing": "coin_tossing"},
}


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package that works, beside one that cannot be imported and one whose list is garbled."""
    folder = tmp_path_factory.mktemp("packages")
    install(folder, "coin-tossing", GROUPS, {"coin_tossing.py": COIN_TOSSING})
    groups = {"tightaudit.methods": {"sure": "unsure"}}
    install(folder, "unsure", groups, {"unsure.py": "import a_module_nobody_has"})
    install(folder, "garbled", "[tightaudit.methods]\nno equals sign\n", {})
    return folder


def test_plug_ins_are_known_everywhere(folder: Path) -> None:
    command = ["-m", "tightaudit", "calibrate", "--mechanism", "coin-tossing", "--method", "never"]
    done = python(folder, *command, "--n", "20", "--released", "5", "--repetitions", "10", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["mechanism"], result["claim"]) == ("coin-tossing()", "perfect")
    assert [row["method"] for row in result["rejections"]] == ["never"]
    counts = ["--n", "20", "--released", "5", "--errors", "0"]
    done = python(
        folder, "-m", "tightaudit", "pvalue", *counts, "--claim", "perfect", "--method", "never", "--json"
    )
    assert json.loads(done.stdout)["p_value"] == 1.0
    done = python(folder, "-m", "tightaudit", "pvalue", "--help")
    assert "never" in done.stdout
    assert "cannot be used: ModuleNotFoundError: No module named 'a_module_nobody_has'" in done.stderr
    assert "the plug-in sure = unsure of unsure 1.0" in done.stderr
    assert "the list of entry points of garbled cannot be used" in done.stderr


def test_an_audit_by_a_method_of_a_plug_in(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys, warnings, tightaudit as ta; warnings.simplefilter('ignore')\n"
        "report = ta.audit([2.0, 1.0, -1.0, 0.0], [1, 1, 0, 0], delta=1e-5, method='never')\n"
        "report.to_json(sys.argv[1]); report.to_html(sys.argv[2])"
    )
    as_json, as_html = tmp_path / "audit.json", tmp_path / "audit.html"
    done = python(folder, "-c", code, str(as_json), str(as_html))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(as_json.read_text(encoding="utf-8"))["rows"][0]["method"] == "never"
    assert "never" in as_html.read_text(encoding="utf-8")


def test_importing_tightaudit_imports_no_plug_in(folder: Path) -> None:
    code = (
        "import sys, tightaudit as ta\n"
        "ta.p_value(ta.Evidence(100, 20, 1), 'gaussian(mu=1)', method='exact')\n"
        "print([name for name in ('coin_tossing', 'unsure') if name in sys.modules])"
    )
    done = python(folder, "-c", code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_failing_plug_in_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = Registry[type]("shape", plugins="shapes")
    monkeypatch.setattr("tests.support.packages.shapes", shapes, raising=False)
    start = (
        "from tests.support.packages import shapes\n@shapes.register\nclass Square:\n    name = 'square'\n"
    )
    modules = {"half_a_shape.py": start + "raise SystemExit(3)\n"}
    monkeypatch.syspath_prepend(
        str(install(tmp_path, "half", {"shapes": {"square": "half_a_shape"}}, modules))
    )
    with pytest.warns(RuntimeWarning, match=r"plug-in square = half_a_shape of half 1.0 .* SystemExit: 3"):
        assert list(shapes) == []
    # Warnings are errors in these tests: a second one would show.
    with pytest.raises(ta.InputError, match="expected one of"):
        shapes["square"]


def test_a_plug_in_that_does_not_register_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"no_shape.py": ""}
    monkeypatch.syspath_prepend(str(install(tmp_path, "none", {"shapes": {"square": "no_shape"}}, modules)))
    with pytest.warns(
        RuntimeWarning, match="square = no_shape of none 1.0 .* registers no shape of that name"
    ):
        list(Registry[type]("shape", plugins="shapes"))


def test_one_name_for_two_things_is_refused() -> None:
    shapes = Registry[type]("shape")
    shapes.register(type("Square", (), {"name": "square"}))
    again = type("Square", (), {"name": "square"})
    assert shapes.register(again) is shapes["square"]
    with pytest.raises(ValueError, match="shape 'square' is registered twice"):
        shapes.register(type("Circle", (), {"name": "square"}))


def test_a_broken_file_in_the_tree_is_named_and_left_out(tmp_path: Path) -> None:
    """A copy of the package with a file that does not import, beside one that adds a method."""
    source = Path(ta.__file__).parent
    shutil.copytree(source, tmp_path / "tightaudit", ignore=shutil.ignore_patterns("__pycache__"))
    methods = tmp_path / "tightaudit" / "methods"
    (methods / "broken.py").write_text("import a_module_nobody_has\n", encoding="utf-8")
    added = COIN_TOSSING[COIN_TOSSING.index("@METHODS") : COIN_TOSSING.index("@MECHANISMS")]
    header = "from dataclasses import dataclass\nfrom tightaudit.extend import METHODS, Assumptions, Method\n"
    (methods / "never.py").write_text(header + added, encoding="utf-8")
    counts = ["--n", "20", "--released", "5", "--errors", "0", "--claim", "gaussian(mu=1)", "--json"]
    done = python(tmp_path, "-m", "tightaudit", "pvalue", *counts, "--method", "never")
    assert (done.returncode, json.loads(done.stdout)["p_value"]) == (0, 1.0)
    assert done.stderr == (
        "tightaudit: warning: the module tightaudit.methods.broken cannot be used: ModuleNotFoundError: "
        "No module named 'a_module_nobody_has'\n"
    )
