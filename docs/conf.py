"""Sphinx configuration."""

from __future__ import annotations

import configparser
from pathlib import Path

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
