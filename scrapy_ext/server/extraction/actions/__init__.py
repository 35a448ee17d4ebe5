"""Browser actions: the steps that run in a page before it is read (extraction-api.md, ``actions``).

An action is an object whose ``action`` names its kind; :data:`ACTIONS` is the table of kinds with their members. The
contract shows ``click`` and ``type``; the others, and the names of all members, are those that users of the hosted
service know. Times are in seconds.

* All actions and their targets (``goto``) are checked before anything is loaded (:mod:`.reading`).
* An action that fails in the page does not fail the page (:func:`.handlers.run_actions`). The actions after it
  are not run, unless ``"onError": "continue"``. One that leads to no page takes the page back to where it was.
* The answer's ``actions`` have the result of each: ``action``, ``status``, ``elapsedTime``, ``error``, and ``result``
  of ``evaluate``. ``status`` is ``success``; ``returned`` for the last one that was run, which failed; ``continued``
  for one that failed and was passed over; or ``skipped``.
* Each action has a limit of its own, its ``timeout``, and there is one for all actions together.
* A script of ``evaluate`` runs where the page's own scripts run, and has the same rights.
"""
