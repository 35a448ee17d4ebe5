"""The form of all messages that users see: each names the thing, the cause and the remedy, and shows no secret.

Messages are made in four forms, which :func:`faults_of` checks. What they say is for people to judge.

- A broken rule: a field, a predicate and a remedy (``url must be an absolute http or https URL. Give one such as …``).
- A cause, which another message has after a colon or in brackets: in lower case, without period.
- An error of a command, which follows the name of the command and a colon: in lower case, with a remedy.
- Any other: sentences that begin with a capital or a name, with a remedy, or with what the package does itself.
"""

from __future__ import annotations

import argparse
import builtins
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from scrapy.settings import Settings

from scrapy_ext.api.extraction.problems import temporary
from scrapy_ext.client.extraction.errors import ExtractError, error_of
from scrapy_ext.client.http import base_url
from scrapy_ext.client.platform.errors import PlatformError
from scrapy_ext.commands.doctor.checking import problem
from scrapy_ext.compatibility.toml import tomllib
from scrapy_ext.crawl.session.services import service_url
from scrapy_ext.server.config.config import ConfigError, ServerConfig
from scrapy_ext.server.config.option import server_url
from scrapy_ext.server.oidc.settings import OidcSettings
from scrapy_ext.settings import PLATFORM_URL, SettingError
from tests.support.user_messages import MASKS, Message, Package

ROOT: Final = Path(__file__).resolve().parents[2]

#: Errors, and functions that return them, that are a cause in another message, and what that is.
CAUSES: Final = {
    "ActionError": "the result of an action",
    "AnswerError": "UnreachableServiceError, Unreachable",
    "ArchiveError": "the refusal of an archive",
    "BuildError": "the log of a job, and the list of versions",
    "BuildFailedError": "the list of versions",
    "Closing": "the log of a request that returns to the queue",
    "CommitWaitsError": "StoreAwayError",
    "ConnectError": "UnreachableServiceError, Unreachable",
    "DamagedError": "the refusal of a body, an archive or a stored record",
    "DamagedPartError": "a part of a snapshot, on its page and in the command",
    "DecodeError": "a broken rule: is not JSON",
    "FingerprintError": "the warning about a request without a fingerprint",
    "InUseError": "the refusal to delete a version",
    "LineError": "UnexpectedAnswer",
    "NoValueError": "the report about an example of a rule",
    "NoVersionError": "the log of a job",
    "NotAppliedError": "the warning about rules that are not applied",
    "NotCopied": "the report of an import",
    "NotOffered": "the report of an import",
    "NotRestorableError": "the log of a job that is not restored",
    "NotSerializableError": "the warning about a request that stays in memory",
    "OverBudgetError": "the log of the end of a crawl",
    "ReadingError": "the list of versions",
    "SendError": "the list of what was sent",
    "StandbyError": "StoreAwayError",
    "UnreadableJournal": "the warning about slots that are not taken over",
    "UnreadablePdfError": "the problem of a PDF",
    "UnreadableRequestError": "the log of a request that is kept among the dead letters",
    "UnstorableItemError": "the log of an item that is not stored",
    "Unmatched": "the result of a monitor",
    "Unmeasured": "the result of a monitor",
    "XPathError": "a broken rule",
    "_EndpointError": "the warning about the endpoint of custom attributes",
    "_Refused": "the answer of a page's proxy to the browser",
    "_UnreachableError": "a finding of scrapy platform doctor",
    "provider_error": "the log of a login that has failed",
    "untrusted": "the log of a login that has failed",
}
#: Errors that are shown after the name of a command or an option, and a colon.
COMMANDS: Final = {
    "ArgumentTypeError",
    "CallError",
    "CommandError",
    "EmbeddedServerError",
    "LockedError",
    "OutputError",
    "StopError",
    "UnsupportedScrapyError",
    "UsageError",
    "_ListenError",
    "view.found",
}
#: Errors that are shown after a colon where the call is known, and alone elsewhere.
CALLS: Final = {"PlatformError", "ExtractError"}
#: Texts by which clients of the platform know an error, so that they stay as they are.
CONTRACT: Final = re.compile(
    r"Unauthorized|Authentication failed|Not Found|missing value for _key field|Active job exists with key \{.*\}"
    r"|Serialized value too large - .*"
)

#: Characters, without values. The longest one explains a setting of another system.
LONGEST: Final = 450
VALUE: Final = re.compile(r"\{[^{}]*\}")
SECRET: Final = re.compile(r"password|passphrase|secret|authorization|credential|api_?key|cookie\.value", re.IGNORECASE)
#: A value whose name is that of an address.
ADDRESS: Final = re.compile(r"(?:\b|_)(?:ur[li]s?|href|address|endpoint|location|proxy)(?:\[[^]]*\])?\}$")
MASKED: Final = re.compile(rf"\b(?:{'|'.join(sorted(MASKS))})\(")
JARGON: Final = re.compile(
    rf"\b(?:{'|'.join(tomllib.loads((ROOT / 'tools/prose.toml').read_text('utf-8'))['words'])})\b", re.IGNORECASE
)
#: Texts that say that something is wrong, and not what.
VAGUE: Final = re.compile(r"(?:Invalid|Error|Failed|Failure|Wrong|Bad|Unknown error|Something|Oops)\b[^:{]*$|invalid\b")
#: Remedies that leave open what to write.
VACUOUS: Final = re.compile(
    r"(?:^|[.;] )(?:Correct (?:it|them|the (?:value|number|name|text|key|header|parameter|tags|address))(?=[.;,]|$)"
    r"|Change (?:it|them|its type)\.?$|Choose (?:another|one)\.?$|Check the key\.?$)"
)
#: A rule is a predicate of its field.
PREDICATE: Final = re.compile(
    r"\{|(?:must|is|are|has|have|was|were|would|cannot|can|may|need|needs|requires|excludes|names|does|belongs|changes"
    r"|took|takes|asks|holds|could|never|and|or|of|with)\b"
)
#: Text in lower case that does not begin with a name.
LOWER: Final = re.compile(r"\{|(?![a-z]+[A-Z_.\[-]|pip |proxy |block-list )[a-z]")

_VERBS: Final = (
    "add|allow|answer|ask|attach|begin|bring|build|call|change|check|choose|clear|compare|convert|copy|correct|create"
    "|decode|delete|deliver|deploy|disable|empty|encode|filter|follow|free|give|go back|group|import|install|join|keep"
    "|leave|let|list|log in|look|lower|make|mount|move|name|omit|open|pip install|please|promote|push|put|quote|raise"
    "|read|redirect|reload|remove|rename|repeat|replace|report|request|restart|restore|resume|return|run|search|see"
    "|send|separate|set|shorten|show|split|start|stop|switch|take|try|turn|type|unpack|update|upgrade|use|verify|wait"
    "|write|yield"
)
#: The beginning of a sentence or clause that says what to do.
REMEDY: Final = re.compile(
    rf"(?:^|[.;:,] |, and |, or |\()(?:then |To |On |With |For |In )?(?:{_VERBS})\b", re.IGNORECASE
)
#: What the package does by itself, or a command that lists what there is.
HANDLED: Final = re.compile(
    r"`scrapy [^`]+` (?:lists|shows)|\bas in `|\btakes? over\b"
    r"|\b(?:is|are) (?:replaced|kept|ignored|killed|ended|retried)\b"
    r"|\b(?:started|sent|run|placed|checked|starts the server) again\b"
    r"|\bmay send\b|\bgoes on\b|\bin force\b|\breturn to the queue\b"
)
#: An error as the cause, which has its own remedy.
NESTED: Final = re.compile(
    r"(?:^|: |, |\(|\. )\{[^{}]*(?:error|outcome|failure|reason|fault|remedy|refus|output|over\()[^{}]*\}"
    # The place after it.
    r"(?: \(\{[^{}]*place[^{}]*\}\))?\W*$",
    re.IGNORECASE,
)


def faults_of(message: Message) -> Iterator[str]:
    """The rules of form that a message breaks."""
    if CONTRACT.fullmatch(message.rule):
        return
    plain = VALUE.sub("X", message.text)
    if len(plain) > LONGEST:
        yield f"is over {LONGEST} characters"
    if re.search(r"!(?:[\s.]|$)", plain):
        yield "has an exclamation mark"
    if any(part.endswith(("…", "...")) for part in (message.rule, message.remedy)):
        yield "ends with an ellipsis"
    if found := JARGON.search(plain):
        yield f"has the word {found[0]!r}"
    if VAGUE.match(message.rule):
        yield "names no cause"
    if VACUOUS.search(message.remedy or message.rule):
        yield "does not say what to write"
    for value in VALUE.findall(message.text):
        if not MASKED.search(value):
            if SECRET.search(value):
                yield f"shows {value}"
            if ADDRESS.search(value) and not message.is_masked:
                yield f"shows {value}, which may have credentials"
    yield from _faults_of_form(message)


def _faults_of_form(message: Message) -> Iterator[str]:
    names = {message.kind, *message.family}
    if message.is_rule and (message.remedy or not message.is_part):
        yield from _faults_of_rule(message)
    elif message.is_part:
        return
    elif names & CAUSES.keys() or (hasattr(builtins, message.kind) and LOWER.match(message.rule)):
        if message.rule.endswith(".") and not message.rule.startswith("{"):
            yield "is a cause with a period"
    elif not message.remedy and not message.kind.endswith(".exception") and not _has_remedy(message.rule):
        yield "has no remedy"
    elif names & COMMANDS and re.match(r"[A-Z][a-z]", message.rule):
        yield "begins with a capital"
    elif (
        not names & (COMMANDS | CALLS)
        and not message.subject
        and message.rule[:1].islower()
        and LOWER.match(message.rule)
    ):
        yield "begins in lower case"


def _faults_of_rule(message: Message) -> Iterator[str]:
    if not PREDICATE.match(message.rule):
        yield "has a rule that is no predicate"
    if message.rule.endswith(".") and not message.rule.endswith(" .."):
        yield "has a rule with a period"
    if not message.remedy:
        yield "has no remedy"


def _has_remedy(text: str) -> bool:
    return bool(REMEDY.search(text) or HANDLED.search(text) or "must be" in text or NESTED.search(text))


def messages_of(source: str) -> list[Message]:
    """The messages of a module with this source."""
    return list(Package({Path("module.py"): source}).messages())


def test_every_message_names_the_thing_the_cause_and_the_remedy() -> None:
    messages = list(Package.of_folder(ROOT / "scrapy_ext").messages())
    faults = [f"{message}: {fault}" for message in messages for fault in faults_of(message)]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)
    # The collector finds them: by far the most are these.
    kinds = {message.kind.rpartition(".")[2] for message in messages}
    assert len(messages) > 1500
    assert {"refused", "Refusal", "SettingError", "CommandError", "StoreError", "warning", "temporary"} <= kinds
    assert kinds | {name for message in messages for name in message.family} >= CAUSES.keys()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('logger.warning("Invalid value")', "names no cause"),
        ('logger.error("Failed")', "names no cause"),
        ('logger.error("The job %s was not found", job)', "has no remedy"),
        ('logger.error("Node %s is lost. Start it again!", name)', "has an exclamation mark"),
        ('logger.warning("the job waits; start a node")', "begins in lower case"),
        ('logger.warning("The node was told to stop. Start it.")', "has the word 'told'"),  # prose: told
        ('logger.warning("Loading. Please wait...")', "ends with an ellipsis"),
        (f'logger.warning("{"long " * 100}. Use less.")', "is over 450 characters"),
        ('raise ValueError(f"The password {password} is too short. Use a longer one.")', "shows {password}"),
        (
            'def f(url: str):\n    raise ValueError(f"Nothing answers at {url}. Check it.")',
            "shows {url}, which may have credentials",
        ),
        (
            'class CommandError(Exception): ...\nraise CommandError("There is no job; name one")',
            "begins with a capital",
        ),
        ('class CommandError(Exception): ...\nraise CommandError("there is no job")', "has no remedy"),
        ('class LineError(ValueError): ...\nraise LineError("a line is not JSON.")', "is a cause with a period"),
    ],
)
def test_a_message_of_another_form_is_found(source: str, fault: str) -> None:
    assert fault in [found for message in messages_of(source) for found in faults_of(message)]


RULE: Final = """
class Violation:
    field: str
    rule: str
    remedy: str

def refused(field: str, rule: str, remedy: str) -> Exception:
    return Exception([Violation(field, rule, remedy)])

raise refused("url", {rule!r}, {remedy!r})
"""


@pytest.mark.parametrize(
    ("rule", "remedy", "faults"),
    [
        ("must be text", 'Write "a".', []),
        ("must be text.", 'Write "a".', ["has a rule with a period"]),
        ("Not text", 'Write "a".', ["has a rule that is no predicate"]),
        ("must be text", "Correct it.", ["does not say what to write"]),
        ("must be text", "", ["has no remedy"]),
    ],
)
def test_a_broken_rule_is_a_predicate_with_a_remedy(rule: str, remedy: str, faults: list[str]) -> None:
    assert [found for each in messages_of(RULE.format(rule=rule, remedy=remedy)) for found in faults_of(each)] == faults


def test_a_text_is_read_through_names_branches_constants_and_conversions() -> None:
    source = """
MOST = "ten"

def f(job, late):
    text = f"{job} has over {MOST} items" if late else f"{job} is late"
    logger.error("%s. Stop %d of them", text, job.number)
    logger.info("Not a message")
    logger.log(logging.INFO, "Neither this")
    raise RuntimeError("nor the report of a fault of the package")
"""
    assert [message.text for message in messages_of(source)] == [
        "{text}. Stop {job.number} of them.",
    ]


def test_the_remedy_of_a_class_and_of_a_partial_belongs_to_the_message() -> None:
    source = """
class Gone(Exception):
    remedy = "Start a new job."

class Problem(Exception):
    def __init__(self, type, detail, *, remedy=""):
        super().__init__(without_user(f"{detail} {remedy}"))

temporary = partial(Problem, "/temporary", remedy="Send it again.")
raise Gone("The job was deleted")
raise temporary(f"{url} broke off")
"""
    gone, broken = (message for message in messages_of(source))
    assert (gone.remedy, broken.remedy) == ("Start a new job.", "Send it again.")
    assert broken.is_masked
    assert not list(faults_of(gone)), "names the thing, the cause and the remedy"


@pytest.mark.parametrize(
    "address", ["ann:wren@shop.example", "ftp://ann:wren@shop.example", "ftp://shop.example/?token=wren"]
)
@pytest.mark.parametrize(
    "refuse",
    [
        lambda address: service_url(Settings({"PLATFORM_URL": address}), PLATFORM_URL),
        lambda address: base_url(address, "PLATFORM_URL", "https://platform.example.com"),
        server_url,
        lambda address: OidcSettings.of(ServerConfig(oidc_issuer=address, public_url=address, oidc_client_id="a")),
    ],
    ids=["setting", "client", "option", "provider"],
)
def test_an_address_that_is_refused_is_shown_without_password_and_token(
    refuse: Callable[[str], object], address: str
) -> None:
    with pytest.raises((ValueError, argparse.ArgumentTypeError)) as caught:
        refuse(address)
    assert "wren" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        error_of(302, {"Location": "http://ann:wren@shop.example/"}, b""),
        error_of(302, {"Location": "http://shop.example/?token=wren"}, b""),
        PlatformError("a redirect to http://ann:wren@shop.example/?token=wren"),
        ExtractError("a redirect to http://shop.example/?token=wren"),
        SettingError("PLATFORM_URL", "must not be http://ann:wren@shop.example/", "Write another."),
        ConfigError("--url http://ann:wren@shop.example cannot be reached. Start the server."),
        temporary("http://ann:wren@shop.example/ broke off."),
        problem("platform", "http://ann:wren@shop.example/?token=wren refuses the key", "Use another."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_with_an_address_has_no_password_and_no_token(error: object) -> None:
    assert "shop.example" in str(error)
    assert "wren" not in str(error)
