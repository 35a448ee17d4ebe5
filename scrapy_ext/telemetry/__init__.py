"""OpenTelemetry: spans of requests, and export of traces and metrics.

Only ``recording`` and ``exporters`` import OpenTelemetry, and only once it is switched on.
"""
