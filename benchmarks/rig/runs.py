"""The runs whose results the documentation shows, in its order. ``make figures`` makes them."""

from __future__ import annotations

from typing import Final

from rig.results import Run

RUNS: Final = (
    # ── the extraction client ──
    Run("extraction_cost", {"schemes": ["http"], "rounds": 3, "pages": 1200}, minutes=7),
    Run(
        "extraction_cost",
        {
            "schemes": ["https"],
            "outputs": ["body"],
            "contenders": ["scrapy", "scrapy_ext", "everything"],
            "rounds": 3,
            "pages": 1200,
        },
        minutes=2,
        variant="tls",
    ),
    Run(
        "extraction_cost",
        {"schemes": ["http"], "kb": [10], "outputs": ["body"], "at_once": 32, "rounds": 3, "pages": 3000},
        minutes=3,
        variant="32",
    ),
    Run("extraction_limits", {"rounds": 1, "times": 5}, minutes=6),
    # ── a crawl ──
    Run("crawl_rate", {"pages": 3000, "rounds": 3, "rtt_ms": [0.0, 50.0], "redis_limit": 15}, minutes=7),
    Run("scheduler_rate", {"rounds": 3}, minutes=1),
    Run("item_cost", {"items": 20_000, "rounds": 3}, minutes=1),
    Run("startup", {"rounds": 5}, minutes=1),
    Run("opentelemetry_cost", {"pages": 3000, "gets": 8000, "rounds": 3}, minutes=2),
    # ── a crawl by several workers ──
    Run("politeness", {}, minutes=7),
    Run("worker_rate", {}, minutes=8),
    Run("large_crawl", {}, minutes=28),
    Run("worker_growth", {}, minutes=5),
    Run("worker_reports", {}, minutes=3),
    Run("stream_segments", {}, minutes=8),
    # ── the extraction service ──
    Run("extraction_relay", {"pages": 1500, "rounds": 3}, minutes=1),
    Run("browser_pool", {"at_once": [4, 6], "pages": 36, "rounds": 2, "soak": 1000, "soak_seconds": 180}, minutes=6),
    Run("extraction_kinds", {"rounds": 3}, minutes=2, folder="labelled"),
    Run("extraction_processes", {"rounds": 3}, minutes=2, folder="labelled"),
    # ── the platform service ──
    Run("platform_ingest", {"posts": 80, "rounds": 3}, minutes=3),
    Run("platform_engines", {"clients": [1, 4, 8], "rounds": 2}, minutes=4),
    Run("platform_collections", {}, minutes=2),
    Run(
        "platform_collections",
        {"sizes": [1_000_000, 10_000_000, 100_000_000], "text": 0, "minutes": 25.0},
        minutes=40,
        variant="keys",
    ),
    Run(
        "platform_collections",
        {"sizes": [1_000_000, 3_000_000, 10_000_000, 30_000_000], "text": 0, "minutes": 25.0, "store": "postgresql"},
        minutes=30,
        variant="keys-postgresql",
    ),
    Run(
        "platform_collections",
        {
            "sizes": [1_000_000, 3_000_000, 10_000_000, 30_000_000],
            "text": 0,
            "minutes": 25.0,
            "store": "postgresql-large",
        },
        minutes=30,
        variant="keys-postgresql-large",
    ),
    Run("platform_small_gets", {"gets": 3000, "rounds": 3}, minutes=2),
    Run("platform_frontier", {"to": 100_000_000.0, "minutes": 60.0}, minutes=30),
    Run(
        "platform_frontier",
        {"to": 100_000_000.0, "store": "postgresql", "minutes": 60.0},
        minutes=30,
        variant="postgresql",
    ),
    Run("pages", {"rounds": 3}, minutes=2),
    Run("jobs", {"rounds": 5}, minutes=2),
    Run("many_jobs", {"sizes": [10_000, 100_000, 1_000_000], "chunks": 1_000_000}, minutes=25),
    # ── deletions, deliveries and downloads ──
    Run("deletion", {"items": 500_000, "seconds": 3.0, "rounds": 2}, minutes=3),
    Run("downloads", {"items": 300_000, "rounds": 2}, minutes=3),
    Run("delivery", {"items": 300_000, "rounds": 2}, minutes=2),
)
