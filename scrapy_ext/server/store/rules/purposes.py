"""The purposes of rules: their rows, and the jobs that they are about."""

from __future__ import annotations

from typing import Final

from scrapy_ext.api.platform import deliveries, monitors, retention
from scrapy_ext.api.platform.rules import DAY_MS, KINDS, RESTORED_DAYS
from scrapy_ext.server.store.rules.rows import RuleRows
from scrapy_ext.server.store.rules.selection import Left, Wanted

RETENTION: Final = RuleRows[retention.NewRule, retention.Rule]("retention", retention.Rule)
DELIVERY: Final = RuleRows[deliveries.NewDeliveryRule, deliveries.DeliveryRule]("delivery", deliveries.DeliveryRule)

MONITOR: Final = RuleRows[monitors.NewMonitor, monitors.Monitor]("monitor", monitors.Monitor)

_MINUTE: Final = 60_000
# Rows of a job are counted. For an EXISTS, PostgreSQL would read the table of all jobs, for each page of jobs.
_OF_JOB: Final = "{0}.project = j.project AND {0}.spider = j.spider AND {0}.job = j.job"


def removed_by(rule: retention.Rule, now: int) -> Wanted:
    """Return the jobs whose data a retention rule removes at a time (ms).

    A job that was restored stays as it is for some days.
    """
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    stays = f"""(SELECT count(*) FROM record_totals s WHERE {_OF_JOB.format("s")} AND s.kind IN ({kinds})
                 AND s.removed IS NULL AND s.restored > {int(now) - RESTORED_DAYS * DAY_MS}) = 0"""  # noqa: S608
    delivered = f"""EXISTS (SELECT 1 FROM deliveries d WHERE {_OF_JOB.format("d")} AND d.kind = t.kind
                            AND d.revision = t.revision AND d.records = t.records)"""  # noqa: S608 - fixed text
    records = f"{stays} AND {delivered}" if rule.only_delivered else stays
    return Wanted(rule, rule.kinds, Left(records, stays if rule.removes_jobs else "1 = 0"))


def delivered_by(rule: deliveries.DeliveryRule, now: int) -> Wanted:
    """Return the jobs that a delivery rule delivers.

    They have records that the rule has not delivered as they are now, or they ended some time ago without records of
    its kinds, and it has not delivered them since.
    """
    kinds = ", ".join(f"'{kind}'" for kind in rule.what)
    done = f"""SELECT count(*) FROM deliveries d WHERE {_OF_JOB.format("d")}
               AND d.rule = {int(rule.id)} AND d.of_server = {int(rule.project is None)}"""  # noqa: S608 - numbers
    records = f"({done} AND d.kind = t.kind AND d.revision = t.revision) = 0"
    # Whole minutes, so that few statements differ.
    before = now // _MINUTE * _MINUTE - deliveries.EMPTY_AFTER
    # A job whose records were removed is not one without records.
    jobs = f"""j.changed <= {before} AND (
                   SELECT count(*) FROM record_totals e WHERE {_OF_JOB.format("e")} AND e.kind IN ({kinds})
                   AND (e.records > 0 OR e.removed IS NOT NULL)) = 0
               AND ({done} AND d.kind = '{deliveries.JOB}' AND d.revision = j.changed) = 0"""  # noqa: S608
    return Wanted(rule, rule.what, Left(records, jobs), with_kept=True)
