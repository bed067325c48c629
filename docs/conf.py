"""Sphinx: Markdown pages, docstrings and the gallery. The finished site needs no network."""

import os
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # examples give the same figures on every machine

import latex2mathml.converter
from docutils.nodes import SkipNode
from sphinx.util.nodes import make_refnode

import fairproj

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
api_members = import_module("api_members")

project = "fairproj"
author = "The fairproj developers"
project_copyright = "2026, the fairproj developers"
release = version = fairproj.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "reproduction/*.md", "readings/*.md", "gallery/**/*.py"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"

autosummary_generate = True
autosummary_context = {
    "own_members": api_members.members_by_class(),
    "outcomes": api_members.outcomes_by_class(),
}
default_role = "py:obj"  # `name` in a docstring is a link to the page of that name
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "backreferences_dir": None,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 280),
    "parallel": True,  # as many as sphinx's -j says
    "image_scrapers": ("gallery_style.scrape",),
    "reset_modules": ("matplotlib", "gallery_style.reset"),
}

html_theme = "pydata_sphinx_theme"
html_title = "fairproj"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "fairproj"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "show_toc_level": 3,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"start": [], "index": []}


def _inline(translator, node):
    translator.body.append(latex2mathml.converter.convert(node.astext()))
    raise SkipNode


def _block(translator, node):
    formula = latex2mathml.converter.convert(node.astext(), display="block")
    translator.body.append(f"<div style='overflow:auto hidden;padding:0.3em 0'>{formula}</div>")
    raise SkipNode


def _hide_signature(app, what, name, value, options, signature, returns):
    """Protocols and enums are not called."""
    if what == "class" and (getattr(value, "_is_protocol", False) or issubclass(value, Enum)):
        return "", returns
    return None


def _link_by_last_name(app, env, node, contnode):
    """A docstring names `FairBoostClassifier` or `gap_curve` without the module it is in."""
    if node.get("refdomain") != "py" or node.get("reftype") != "obj":
        return None
    domain = env.domains["py"]
    ends = "." + node["reftarget"]
    found = [
        (name, entry)
        for name, entry in domain.objects.items()
        if name.endswith(ends) and entry.objtype != "module" and not entry.aliased
    ]
    if len(found) != 1:
        return None
    ((name, entry),) = found
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, name)


def setup(app):
    """Register the renderer of formulas, and how names are linked."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("autodoc-process-signature", _hide_signature)
    app.connect("missing-reference", _link_by_last_name)
