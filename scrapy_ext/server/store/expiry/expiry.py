"""Removal of what is older than the operator keeps it. Each method yields the number of rows removed by each step."""

from __future__ import annotations

from typing import Final

from scrapy_ext.server.store.engine.methods import EngineStore
from scrapy_ext.server.store.expiry import activity, collections, frontiers, jobs, monitors, versions
from scrapy_ext.server.store.expiry.steps import Steps

#: Milliseconds of a day, the unit of the arguments.
DAY: Final = 24 * 3600 * 1000


class ExpiryStore(EngineStore):
    """Removals by age; nothing that the clock shows as stored in the future is old."""

    def deleted_jobs(self, days: int) -> Steps:
        """Remove the last rows of jobs that were deleted ``days`` ago."""
        return jobs.forget_jobs(self._engine, self._before(days))

    def messages(self, days: int, most: int) -> Steps:
        """Remove activity messages by age, and all but the newest ``most`` of a project."""
        return activity.remove_messages(self._engine, self._before(days), most)

    def deliveries(self, days: int) -> Steps:
        """Remove past deliveries of webhooks."""
        return activity.remove_deliveries(self._engine, self._before(days))

    def monitor_results(self, days: int) -> Steps:
        """Remove results of monitors, and past messages of alerts."""
        return monitors.remove_results(self._engine, self._before(days))

    def expired_records(self) -> Steps:
        """Remove expired records of collections."""
        return collections.remove_expired_records(self._engine, self._clock())

    def frontiers(self, days: int) -> Steps:
        """Remove own frontiers of jobs that are over; those with requests ``days`` after the end of the job."""
        ended = self._clock() - frontiers.GRACE
        return frontiers.remove_frontiers(self._engine, frontiers.FrontierAges(ended, self._before(days)))

    def staged_items(self) -> Steps:
        """Remove staged items of jobs that are over."""
        return frontiers.remove_staged_items(self._engine, self._clock() - frontiers.GRACE)

    def uploads(self) -> Steps:
        """Remove uploads of versions that were given up."""
        return versions.remove_uploads(self._engine, self._clock() - versions.GIVEN_UP)

    def _before(self, days: int) -> int:
        return self._clock() - days * DAY
