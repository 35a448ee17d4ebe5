"""The description of every path of both services, in OpenAPI 3.1: ``GET /openapi.json``.

Each module describes the paths of one group of resources: a table of :class:`~.words.Operation`, one entry for each
method of each path. Shapes and bounds come from ``api/``. A path that is added gets its entry in the table of its
group; a test fails while it has none, and another while a path is described that does not exist.
"""
