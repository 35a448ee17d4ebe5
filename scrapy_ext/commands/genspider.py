"""``scrapy genspider``: Scrapy's command with the spiders of this package as further templates.

Scrapy looks for templates in one folder, TEMPLATES_DIR or its own. Setting that would replace the templates of a
project, and there is no hook beside it. So the command is Scrapy's, and looks here for a name that it does not find
there: a project's own template of the same name comes first.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from scrapy.commands.genspider import Command as GenspiderCommand

#: Folder of the templates. :func:`string.Template` fills in ``$name``, ``$url``, ``$module`` and ``$classname``.
TEMPLATES: Final = Path(__file__).parent / "spider_templates"


def names() -> list[str]:
    """Return the names of the templates."""
    return sorted(path.stem for path in TEMPLATES.glob("*.tmpl"))


class Command(GenspiderCommand):
    """The command ``genspider`` of Scrapy."""

    def _find_template(self, template: str) -> Path | None:
        if template in names() and not self._is_own(template):
            return TEMPLATES / f"{template}.tmpl"
        return super()._find_template(template)

    def _is_own(self, template: str) -> bool:
        """Return whether the folder that Scrapy looks in, such as that of the project, has a template of a name."""
        return Path(self.templates_dir, f"{template}.tmpl").exists()

    def _list_templates(self) -> None:
        super()._list_templates()
        sys.stdout.write("Templates of scrapy-ext:\n")
        for name in names():
            if not self._is_own(name):
                sys.stdout.write(f"  {name}\n")
