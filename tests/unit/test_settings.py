"""Reading of settings."""

import pytest
from scrapy.settings import BaseSettings

from scrapy_ext.settings import SETTINGS, SettingError, SettingType


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_has_a_meaning_and_a_default_of_its_type(setting, monkeypatch):
    monkeypatch.delenv(setting.name, raising=False)
    assert setting.meaning.endswith(".")
    default = setting.read(BaseSettings())
    types = {
        SettingType.BOOL: bool,
        SettingType.INT: int,
        SettingType.BOOL_OR_INT: bool,
        SettingType.FLOAT: float,
        SettingType.STR: str,
        SettingType.LIST: list,
        SettingType.DICT: dict,
    }
    assert default is None or type(default) is types[setting.type]


def test_command_line_values_are_read_as_scrapy_reads_them():
    settings = BaseSettings(
        {
            "PLATFORM_ENABLED": "0",
            "FRONTIER_SLOTS": "16",
            "SERVER_ALLOW_HOSTS": "a:1,b:2",
            "EXTRACT_API_PARAMS": '{"geolocation": "DE"}',
        }
    )
    assert SETTINGS["PLATFORM_ENABLED"].read(settings) is False
    assert SETTINGS["FRONTIER_SLOTS"].read(settings) == 16
    assert SETTINGS["SERVER_ALLOW_HOSTS"].read(settings) == ["a:1", "b:2"]
    assert SETTINGS["EXTRACT_API_PARAMS"].read(settings) == {"geolocation": "DE"}


def test_a_name_that_is_given_twice_in_a_setting_is_refused():
    text = '{"geolocation": "DE", "geolocation": "US"}'
    with pytest.raises(SettingError, match="EXTRACT_API_PARAMS has 'geolocation' more than once"):
        SETTINGS["EXTRACT_API_PARAMS"].read(BaseSettings({"EXTRACT_API_PARAMS": text}))


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *((value, True) for value in (True, 1, "1", "true", "True")),
        *((value, False) for value in (False, 0, "0", "False")),
        *(("20", 20), (1000, 1000)),
    ],
)
def test_a_switch_that_may_be_a_number(value, read):
    found = SETTINGS["EXTRACT_API_SNAPSHOTS_ON_ERROR"].read(BaseSettings({"EXTRACT_API_SNAPSHOTS_ON_ERROR": value}))
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("value", "rule"), [("some", "must be of type bool or int"), (-1, "at least 0"), (1001, "at most 1000")]
)
def test_a_wrong_number_for_a_switch_is_refused(value, rule):
    with pytest.raises(SettingError, match=rule):
        SETTINGS["EXTRACT_API_SNAPSHOTS_ON_ERROR"].read(BaseSettings({"EXTRACT_API_SNAPSHOTS_ON_ERROR": value}))


def test_the_environment_counts_where_the_setting_is_not_set(monkeypatch):
    monkeypatch.setenv("PLATFORM_PROJECT", "7")
    monkeypatch.setenv("FRONTIER_SLOTS", "7")
    assert SETTINGS["PLATFORM_PROJECT"].read(BaseSettings()) == 7
    assert SETTINGS["PLATFORM_PROJECT"].read(BaseSettings({"PLATFORM_PROJECT": 9})) == 9
    assert SETTINGS["FRONTIER_SLOTS"].read(BaseSettings()) == 8, "not a setting of the environment"
    monkeypatch.setenv("PLATFORM_PROJECT", "")
    assert SETTINGS["PLATFORM_PROJECT"].read(BaseSettings()) == 1


def test_a_wrong_value_is_shown_unless_it_is_a_secret():
    with pytest.raises(SettingError, match="FRONTIER_SLOTS must be of type int, got 'many'"):
        SETTINGS["FRONTIER_SLOTS"].read(BaseSettings({"FRONTIER_SLOTS": "many"}))
    assert SETTINGS["PLATFORM_API_KEY"].secret
    assert SETTINGS["EXTRACT_API_KEY"].secret


def test_a_secret_may_come_from_a_file(tmp_path, monkeypatch):
    monkeypatch.delenv("PLATFORM_API_KEY", raising=False)
    monkeypatch.setenv("PLATFORM_API_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(SettingError, match=r"PLATFORM_API_KEY_FILE names .*key, which cannot be read"):
        SETTINGS["PLATFORM_API_KEY"].read(BaseSettings())
    (tmp_path / "key").write_text("sesame\n")
    assert SETTINGS["PLATFORM_API_KEY"].read(BaseSettings()) == "sesame"
    assert SETTINGS["PLATFORM_API_KEY"].read(BaseSettings({"PLATFORM_API_KEY": "mine"})) == "mine"
