"""How the pages become a site: `make site` runs Sphinx with this file.

The pages are Markdown that reads well wherever it is shown. What Sphinx needs beyond that is added here while
it reads them: the navigation, the kinds of code blocks, and what the reference says of each name.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.util.typing import stringify_annotation

from tightaudit.evidence.counts import Rule
from tightaudit.evidence.ids import Ids
from tightaudit.support.checks import BoolArray, FloatArray
from tightaudit.support.progress import Progress

project = "tightaudit"
html_title = project
language = "en"
# Quotation marks are meant as they stand, many of them being code.
smartquotes = False

NAVIGATION = {
    "Guides": {
        "audit-your-run": "Audit your run",
        "in-your-tests": "Audit a mechanism in your tests",
        "any-mechanism": "Audit any mechanism",
        "dpsgd": "Audit DP-SGD with Opacus",
        "records": "Audit the whole pipeline: canaries as records",
        "jax": "Audit a training with JAX-Privacy",
        "zoo": "A zoo of real mistakes",
        "any-scores": "Audit from any scores",
        "few-runs": "A few runs, and looks before the end",
        "plan": "Plan: how many canaries",
    },
    "What to trust": {
        "which-method": "Which method when",
        "validity": "Validity",
        "peers": "Other auditors' false alarms",
        "support": "Supported versions",
        "tightness": "Tightness",
        "paper": "The paper, figure by figure",
        "speed": "Speed",
    },
    "Extend": {
        "adding-a-mechanism": "Adding a mechanism or a claim",
        "adding-a-method": "Adding a method",
    },
    "Reference": {
        "commands": "Claims and commands",
        "glossary": "Glossary",
        "api": "API",
        "audit-json": "JSON of an audit",
        "any-dependence": "Proof: any dependence",
        "correlated-noise": "Derivation: correlated noise",
        "rank-weighted": "Proof: rank-weighted",
    },
}

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# A page that is in no navigation is a mistake, and so is everything else that Sphinx warns of.
exclude_patterns: list[str] = []

html_theme = "furo"
html_static_path = ["site.css", "stix-two-math.woff2"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
# Only pages that are here: no copies of the sources, no index that repeats the reference.
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
# Prose in docstrings is Markdown: `name` is code.
default_role = "code"
add_module_names = False
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"


def navigation() -> str:
    """The pages in order, as Sphinx wants them said on the first one.

    >>> navigation().splitlines()[:4]
    ['```{toctree}', ':hidden:', ':caption: Guides', '']
    """
    trees = (
        "\n".join(
            ["```{toctree}", ":hidden:", f":caption: {caption}", ""]
            + [f"{title} <{page}>" for page, title in pages.items()]
            + ["```"]
        )
        for caption, pages in NAVIGATION.items()
    )
    return "\n\n".join(trees)


# Python forgets the names of types; these are what a reader would write.
SHORT_TYPES = {
    name: re.sub(r"~[\w.]+\.", "", stringify_annotation(meant, "smart"))
    for name, meant in {
        "ArrayLike": ArrayLike,
        "FloatArray": FloatArray,
        "BoolArray": BoolArray,
        "Ids": Ids,
        "Progress": Progress,
        "Rule": Rule,
    }.items()
}
_LOGGER = getLogger(__name__)
# The empty line that ends the output of a session is for the tests.
_SESSION = re.compile(r"^```python\n(>>> .*?)\n*^```$", re.MULTILINE | re.DOTALL)
_TITLED = re.compile(r"^```(\w+) title=\"([^\"]+)\"\n", re.MULTILINE)
_LINKED_PICTURE = re.compile(r"\[(!\[[^\]]*\]\([^)]+\))\]\([^)]+\)")
_NAME = re.compile(r"^- `(tightaudit[\w.]+)`$", re.MULTILINE)
_PLAIN = re.compile(r"(``?[^`]*``?)")


def readable(text: str) -> str:
    r"""A page with the kinds of its code blocks spelled out: sessions, and files with their names.

    >>> readable("```python\n>>> 1 + 1\n2\n```").splitlines()[0]
    '```pycon'
    """
    text = _LINKED_PICTURE.sub(r"\1", text)
    text = _SESSION.sub(r"```pycon\n\1\n```", text).replace("(api.md#tightaudit.", "(#tightaudit.")
    return _TITLED.sub(r"```{code-block} \1\n:caption: \2\n\n", text)


def reference(name: str) -> str:
    """The directive that shows what a public name says of itself.

    >>> print(reference("tightaudit.InputError"))
    ```{eval-rst}
    .. autoexception:: tightaudit.InputError
    ```
    """
    found = pkgutil.resolve_name(name)
    if inspect.ismodule(found):
        kind, options = "module", "\n   :no-members:"
    elif inspect.isclass(found):
        kind, options = ("exception" if issubclass(found, BaseException) else "class"), ""
    else:
        kind, options = "function", ""
    return f"```{{eval-rst}}\n.. auto{kind}:: {name}{options}\n```"


def _read_page(_: Sphinx, name: str, source: list[str]) -> None:
    text = readable(source[0])
    if name == "index":
        text = f"{text}\n\n{navigation()}\n"
    if name == "api":
        text = _NAME.sub(lambda match: reference(match[1]) + "\n", text)
    source[0] = text


def _read_docstring(
    _app: Sphinx, _what: str, _name: str, _of: object, _options: Any, lines: list[str]
) -> None:
    lines[:] = as_restructured(lines)


def as_restructured(lines: list[str]) -> list[str]:
    r"""The Markdown of a docstring as reStructuredText, which is what Sphinx reads there.

    >>> as_restructured(["Say", "", "    x = 1", "", "|x|"])
    ['Say', '', '::', '', '    x = 1', '', '\\|x\\|']
    """
    found: list[str] = []
    in_code = in_session = False
    for line in lines:
        indented = line.startswith("    ")
        in_session = line.lstrip().startswith(">>>") or (in_session and bool(line.strip()))
        if indented and not in_code and not in_session and found and not found[-1].strip():
            found += ["::", ""]
            in_code = True
        elif line.strip() and not indented:
            in_code = False
        found.append(line if in_code or in_session else _prose(line))
    return found


def _prose(line: str) -> str:
    r"""Markdown as reStructuredText: signs that mean something only there are escaped.

    >>> _prose("|L| of `f(x)`")
    '\\|L\\| of `f(x)`'
    """
    return "".join(
        part if part.startswith("`") else re.sub(r"([|\\])|(?<=\w)_(?!\w)", r"\\\g<0>", part)
        for part in _PLAIN.split(line)
    )


def _name_types(_: Sphinx, document: nodes.document) -> None:
    for signature in document.findall(addnodes.desc_signature):
        for part in list(signature.findall(nodes.Element)):
            for name, text in SHORT_TYPES.items():
                _put_name(part, name, text)


def _put_name(part: nodes.Element, name: str, text: str) -> None:
    """Replace the children that together spell out a type by its name."""
    for start in range(len(part)):
        for end in range(start + 1, len(part) + 1):
            if "".join(child.astext() for child in part[start:end]) == text:
                part[start:end] = [nodes.Text(name)]
                return


def _link_pictures(app: Sphinx, document: nodes.document, _name: str) -> None:
    # On a phone a picture is best looked at alone.
    for picture in list(document.findall(nodes.image)):
        _, file = app.env.images[picture["uri"]]
        picture.replace_self(
            nodes.reference("", "", picture.deepcopy(), refuri=f"_images/{file}", internal=True)
        )


def _visit_math(translator: Any, node: nodes.Element) -> None:
    block = isinstance(node, nodes.math_block)
    try:
        text = latex2mathml.tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        _LOGGER.warning("%s: %s", error, node.astext(), location=node)
        raise nodes.SkipNode from error
    # Within a line a formula has no spaces of its own, which a browser would show.
    text = re.sub(r">\s+<", "><", text)
    translator.body.append(f'<div class="math">{text}</div>' if block else text)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """What is registered with Sphinx."""
    app.connect("source-read", _read_page)
    app.connect("autodoc-process-docstring", _read_docstring)
    app.connect("doctree-read", _name_types)
    app.connect("doctree-resolved", _link_pictures)
    # Docutils makes MathML of a formula when the site is built: nothing is fetched to read it.
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
