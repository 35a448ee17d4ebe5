"""Monitors, their results, and the targets of alerts. The hosted platform does not have them."""

from __future__ import annotations

from scrapy_ext.api.platform.alerts import AlertMessage, AlertTarget
from scrapy_ext.api.platform.keys import Host
from scrapy_ext.api.platform.monitors import Incident, Monitor, MonitorPreview, MonitorResult
from scrapy_ext.client.platform.calls import JSON, delete, get, path, post, send_json
from scrapy_ext.client.platform.resource import Resource
from scrapy_ext.client.platform.rules import Rules

_Results = list[MonitorResult]
_Incidents = list[Incident]
_Targets = list[AlertTarget]
_Messages = list[AlertMessage]


class Monitors(Rules[Monitor, MonitorPreview]):
    """Rules about finished jobs and expected runs."""

    _name = "monitors"
    _rule = Monitor
    _rules = list[Monitor]
    _preview = MonitorPreview

    async def results(
        self,
        project: int,
        *,
        job: str | None = None,
        monitor: int | None = None,
        of_server: bool = False,
        count: int | None = None,
    ) -> _Results:
        """Return the results of a job, of a monitor, or of all jobs of a project; the newest first."""
        parameters = (("job", job), ("monitor", monitor), ("of_server", of_server), ("count", count))
        return await self._json(get(Host.APP, self._path(project, "results"), *parameters, accept=JSON), _Results)

    async def incidents(self, project: int) -> _Incidents:
        """Return the monitors that fail for a spider now, oldest first."""
        return await self._json(get(Host.APP, self._path(project, "incidents"), accept=JSON), _Incidents)


class Alerts(Resource):
    """Targets of a project's alerts: addresses of Apprise, which are masked in every answer."""

    async def list(self, project: int) -> _Targets:
        return await self._json(get(Host.APP, _alerts(project), accept=JSON), _Targets)

    async def create(self, project: int, name: str, url: str) -> AlertTarget:
        """Add a target. Sent once: a second attempt could add another."""
        call = send_json("POST", _alerts(project), {"name": name, "url": url}, repeatable=False)
        return await self._json(call, AlertTarget)

    async def disable(self, project: int, id: int, disabled: bool) -> AlertTarget:
        """Enable a target, or disable it and drop its pending messages."""
        return await self._json(send_json("PATCH", _alerts(project, id), {"disabled": disabled}), AlertTarget)

    async def delete(self, project: int, id: int) -> None:
        await self._transport.send(delete(Host.APP, _alerts(project, id)))

    async def test(self, project: int, id: int) -> AlertMessage:
        """Send a trial message; its result is in :meth:`messages`."""
        call = post(Host.APP, _alerts(project, id, "test"), None, accept=JSON, repeatable=False)
        return await self._json(call, AlertMessage)

    async def messages(self, project: int, id: int, *, count: int | None = None) -> _Messages:
        """Return recent and pending messages to a target, newest first."""
        return await self._json(
            get(Host.APP, _alerts(project, id, "messages"), ("count", count), accept=JSON), _Messages
        )


def _alerts(project: int, *rest: int | str) -> str:
    return path("api", "projects", project, "alerts", *rest)
