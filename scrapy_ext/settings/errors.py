"""Error of a setting."""

from __future__ import annotations

from scrapy_ext.api.masking import without_secrets


class SettingError(ValueError):
    """A setting has an unusable value; the message names the setting, the rule and the remedy."""

    def __init__(self, name: str, rule: str, remedy: str) -> None:
        self.name = name
        self.rule = without_secrets(rule)
        self.remedy = remedy
        super().__init__(f"{name} {self.rule}. {remedy}")
