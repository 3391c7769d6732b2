"""How Sphinx makes the site from the folder that tools/site.py has filled. Nothing is loaded from
the network: the theme brings its style, and fonts are those of the reader."""

import os

project = "HAKMEM"
author = "the HAKMEM authors"
copyright = "the HAKMEM authors, MIT licence"  # noqa: A001 (Sphinx wants this name)
release = version = os.environ["SITE_VERSION"]
html_title = f"HAKMEM {release}"
extensions = ["myst_parser", *(["breathe"] if os.environ.get("SITE_API") else [])]
html_theme = "furo"
html_static_path = ["_static"]
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages may leave out a level
nitpicky = True
nitpick_ignore_regex = [  # types of the languages and of their libraries have no page here
    (r"c:identifier", r"(size_t|u?int\d+_t|bool|hakmem_heap)"),
    (r"cpp:identifier", r"(std|hakmem|detail|T|U|Type|Other)(::.*)?|hakmem_\w+"),
]
breathe_projects = {"hakmem": os.environ.get("SITE_API", "")}
breathe_default_project = "hakmem"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False
