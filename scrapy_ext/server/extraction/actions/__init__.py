"""Browser actions: what a caller may have done in a page before it is read (extraction-api.md, ``actions``).

An action is an object whose ``action`` names its kind; :data:`ACTIONS` is the table of kinds and of the members that
each takes. The document shows ``click`` and ``type``; the others, and the names of all members, are those that users of
the hosted service know. Times are in seconds.

* All actions are checked before anything is loaded (:mod:`.reading`), where they lead (``goto``) as well.
* One that fails in the page does not fail the page (:mod:`.running`). The actions after it are not run, unless
  ``"onError": "continue"`` says so. One that leads nowhere takes the page back to where it was.
* The answer's ``actions`` tell of each what became of it: ``action``, ``status``, ``elapsedTime``, ``error``, and
  ``result`` of ``evaluate``. ``status`` is ``success``; ``returned``, failed and the last that was run; ``continued``,
  failed and passed over; or ``skipped``.
* Each has a bound of its own, its ``timeout``, and all of them together have one.
* What a caller has evaluated runs where the page's own scripts run, and can do no more than they.
"""

from scrapy_ext.server.extraction.actions.context import Action, ActionContext, Selector
from scrapy_ext.server.extraction.actions.reading import ACTIONS, MAX_ACTIONS, Kind, malformed, read_actions
from scrapy_ext.server.extraction.actions.running import run_actions

__all__ = [
    "ACTIONS",
    "MAX_ACTIONS",
    "Action",
    "ActionContext",
    "Kind",
    "Selector",
    "malformed",
    "read_actions",
    "run_actions",
]
