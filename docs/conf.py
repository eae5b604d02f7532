"""Sphinx configuration."""

from __future__ import annotations

import configparser
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from mcpsync.core.era import REVISIONS, Revision

_setup = configparser.ConfigParser()
_setup.read(Path(__file__).resolve().parent.parent / "setup.cfg")

project = "mcpsync"
author = "mcpsync contributors"
copyright = "2026, mcpsync contributors"
release = version = _setup["metadata"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "examples"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
html_theme = "furo"
html_title = "mcpsync"


class RevisionTable(Directive):
    """The table of revisions as the code has it: a row for each property, a column for each revision."""

    def run(self):
        columns = [["", *REVISIONS]]
        rows = [
            [name.replace("_", " "), *(_shown(getattr(each, name)) for each in REVISIONS.values())]
            for name in Revision._fields
            if name != "name"
        ]
        group = nodes.tgroup(cols=len(columns[0]))
        group += [nodes.colspec(colwidth=1) for _ in columns[0]]
        head, body = nodes.thead(), nodes.tbody()
        head += [_row(cells) for cells in columns]
        body += [_row(cells) for cells in rows]
        group += [head, body]
        table = nodes.table()
        table += group
        return [table]


def _shown(value):
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _row(cells):
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        entry += nodes.paragraph(text=cell)
        row += entry
    return row


def setup(app):
    app.add_directive("revision-table", RevisionTable)
