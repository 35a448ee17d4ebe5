"""Configuration of the documentation. Build it with `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scrapy-ext"
author = "scrapy-ext developers"
copyright = f"2026, {author}"
release = version = installed_version("scrapy-ext")

extensions = ["sphinx.ext.intersphinx", "inventories", "roles", "llms"]

exclude_patterns = ["_build"]
default_role = "any"
highlight_language = "python"
# Options (``--json``) and quotes of code stand in the descriptions of commands as they are typed.
smartquotes = False

intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", None),
    "scrapy": ("https://docs.scrapy.org/en/latest/", None),
}

html_theme = "furo"
html_title = f"scrapy-ext {version}"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
