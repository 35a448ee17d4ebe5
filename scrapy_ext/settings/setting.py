"""A setting of the table: its record, and the reading of its value in force."""

from __future__ import annotations

from typing import Any

import msgspec
from scrapy.settings import BaseSettings

from scrapy_ext.api.repeated_names import repeated_names
from scrapy_ext.server.config.secret_files import SecretFileError, secret_in
from scrapy_ext.settings.conversion import CONVERSIONS, REMEDIES, SettingType
from scrapy_ext.settings.errors import SettingError
from scrapy_ext.settings.variables import variables


class Setting(msgspec.Struct, frozen=True):
    name: str
    type: SettingType
    default: Any
    #: One line of meaning, for the reference page.
    meaning: str
    #: True: read from the environment variable of the same name, or from ``.env``, when the setting is not set;
    #: a secret also from the file that the variable ``NAME_FILE`` names.
    environment: bool = False
    #: True: the value is never shown.
    secret: bool = False
    #: Separator of a list in the environment; None: white space.
    separator: str | None = ","
    #: Bounds of a number.
    least: float | None = None
    most: float | None = None

    def read(self, settings: BaseSettings) -> Any:
        """Return the value in force, converted to the setting's type; raises :class:`SettingError`."""
        value = settings.get(self.name)
        if value is None and self.environment:
            value = self._variable() or None
            if value and self.type is SettingType.LIST:
                value = value.split(self.separator)
        if value is None:
            return self.default
        if self.type is SettingType.DICT and isinstance(value, str):
            self._check_names(value)
        try:
            converted = CONVERSIONS[self.type](value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            shown = "" if self.secret else f", got {value!r}"
            remedy = REMEDIES.get(self.type, "Correct it where it is set.")
            raise SettingError(self.name, f"must be of type {self.type.value}{shown}", remedy) from None
        if self.least is not None and not converted >= self.least:
            raise SettingError(
                self.name, f"must be at least {self.least:g}, got {converted!r}", f"Use {self.least:g} or more."
            )
        if self.most is not None and not converted <= self.most:
            raise SettingError(
                self.name, f"must be at most {self.most:g}, got {converted!r}", f"Use {self.most:g} or less."
            )
        return converted

    def _check_names(self, text: str) -> None:
        """Raise :class:`SettingError` for a name that an object of a JSON text has more than once."""
        try:
            repeated = next(repeated_names(text), None)
        except (ValueError, RecursionError):
            return  # the conversion reports what is no JSON
        if repeated is not None:
            raise SettingError(self.name, f"has {repeated.field!r} more than once", "Give it once.")

    def _variable(self) -> str | None:
        try:
            return secret_in(variables(), self.name) if self.secret else variables().get(self.name)
        except SecretFileError as error:
            raise SettingError(error.name, error.rule, error.remedy) from None
