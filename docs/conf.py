"""Sphinx: Markdown pages and the docstrings."""

import fairproj

project = "fairproj"
author = "The fairproj developers"
project_copyright = "2026, the fairproj developers"
release = version = fairproj.__version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "fairproj"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
