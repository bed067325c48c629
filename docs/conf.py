"""Sphinx: Markdown pages and the docstrings. Formulas become MathML, so pages need no network."""

import latex2mathml.converter
from docutils.nodes import SkipNode

import fairproj

project = "fairproj"
author = "The fairproj developers"
project_copyright = "2026, the fairproj developers"
release = version = fairproj.__version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "fairproj"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_math_renderer = "mathml"
autodoc_typehints = "none"
numpydoc_show_class_members = False
exclude_patterns = ["_build", "reproduction/*.md", "readings/*.md"]


def _inline(translator, node):
    translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise SkipNode


def _block(translator, node):
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    translator.body.append(f"<div style='overflow:auto hidden;padding:0.3em 0'>{formula}</div>")
    raise SkipNode


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
