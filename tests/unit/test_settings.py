"""Reading of settings."""

from pathlib import Path

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


TRUE = ("1", "true", "True", 1, True)
FALSE = ("0", "false", "False", 0, False)
#: Values of a type with what is read, and values that are refused, for every setting of the type.
READ = {
    SettingType.BOOL: [*((value, True) for value in TRUE), *((value, False) for value in FALSE)],
    SettingType.INT: [("16", 16), (16, 16), (16.0, 16)],
    SettingType.BOOL_OR_INT: [*((value, True) for value in TRUE), *((value, False) for value in FALSE), ("7", 7)],
    SettingType.FLOAT: [("16", 16.0), ("16.5", 16.5), (16, 16.0)],
    SettingType.STR: [("a,b", "a,b"), ("", ""), (4, "4"), (Path("a", "b"), str(Path("a", "b")))],
    SettingType.LIST: [
        ("", []),
        ("a:1", ["a:1"]),
        ("a:1, b:2,", ["a:1", "b:2"]),
        ('["a:1", "b:2"]', ["a:1", "b:2"]),
        ("[::1]:80,b:2", ["[::1]:80", "b:2"]),
        (("a:1",), ["a:1"]),
    ],
    SettingType.DICT: [('{"a": {"b": [1, null]}}', {"a": {"b": [1, None]}}), ("{}", {}), ({"a": 1}, {"a": 1})],
}
REFUSED = {
    SettingType.BOOL: ["", "yes", "None", "on", [1]],
    SettingType.INT: ["", "16.5", 16.5, "many", "0x10", float("inf"), float("nan"), [16], "[16]"],
    SettingType.BOOL_OR_INT: ["", "yes", "2.5", 2.5, float("inf"), [1]],
    SettingType.FLOAT: ["", "16,5", "many", [1]],
    SettingType.STR: [["a"], {"a": 1}, b"a", True],
    SettingType.LIST: [5, {"a": 1}, b"a:1", "[1, 2]", "[[]]"],
    SettingType.DICT: ["", "{'a': 1}", "a=1", '["ab"]', '[["a", 1]]', "null", "5", 5, ["ab"], "{" * 100_000],
}


def with_values(table):
    return [
        pytest.param(setting, value, id=f"{setting.name}-{number}")
        for setting in SETTINGS.values()
        for number, value in enumerate(table[setting.type])
    ]


@pytest.mark.parametrize(("setting", "value"), with_values(READ))
def test_each_setting_reads_the_values_of_its_type_as_scrapy_does(setting, value):
    given, right = value
    found = setting.read(BaseSettings({setting.name: given}))
    assert (found, type(found)) == (right, type(right))


@pytest.mark.parametrize(("setting", "value"), with_values(REFUSED))
def test_each_setting_refuses_what_is_not_of_its_type(setting, value):
    """Scrapy's getters would make 16 of 16.5, {'a': 'b'} of ["ab"] and ['["a"', '"b"]'] of a list in JSON."""
    with pytest.raises(SettingError, match=f"{setting.name} must be of type {setting.type.value}"):
        setting.read(BaseSettings({setting.name: value}))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("EXTRACT_API_PARAMS", "{'geolocation': 'DE'}", "JSON after -s"),
        ("SERVER_ALLOW_HOSTS", 5, "commas between them after -s"),
        ("PLATFORM_ENABLED", "yes", "Write True or False."),
    ],
)
def test_a_refused_value_is_reported_with_the_form_of_the_command_line(name, value, remedy):
    with pytest.raises(SettingError, match=remedy):
        SETTINGS[name].read(BaseSettings({name: value}))
