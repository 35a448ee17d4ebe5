"""The bounds of every request, whatever its path; those of bodies are in ``server/http/bodies.py`` and of the
extraction service in ``server/config/extraction_limits.py``. Seconds and bytes unless said. How long a client may
pause is an option (``--client-timeout``)."""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

#: Of the address with its query, as it is sent; longer gives 414.
TARGET: Final = 64 * KIB
#: Query parameters; more give 400.
PARAMETERS: Final = 4000
#: Headers in all, and how many of them; more give 431.
HEADERS: Final = 64 * KIB
HEADER_COUNT: Final = 100
#: From the headers of a request to the platform to the beginning of its answer, its body included; then 503.
REQUEST: Final = 900.0
#: The least of what bodies, what they decode to, and answers may hold by default, all together (``--memory``). A
#: request that alone would hold more gets 413, and one that finds no room 503.
MEMORY: Final = 512 * MIB
#: Bytes in the buffers of a connection from which they count for that.
UNCOUNTED: Final = 16 * KIB
#: Bytes of an answer that wait in the process and in the system for a client to read them, beside one piece.
SEND_BUFFER: Final = 64 * KIB
#: Bytes of an answer that are handed to the connection at once.
SEND_PIECE: Final = 256 * KIB
#: Bytes a second that a client must send of a body, and read of an answer, on average, beside the time for which it may
#: pause.
SLOWEST: Final = 1 * KIB
#: A body that nobody wants is read and thrown away up to here, so that its sender can read the answer; then the
#: connection is closed.
LINGER_TIME: Final = 5.0
LINGER: Final = 256 * MIB
#: A body shorter than this is read to its end instead, and the connection goes on.
SHORT_BODY: Final = 64 * KIB
#: Connections at once where no option says (``--connections``), and where the process may open files enough.
CONNECTIONS: Final = 4096
#: Requests that a client may send before it has the answer to the first of them; the connection is closed after these.
PIPELINE: Final = 16
#: Until the headers of the first request of a connection have come; less where ``--client-timeout`` is.
FIRST_REQUEST: Final = 20.0
#: Until requests under way are ended when the server stops.
GRACE: Final = 10.0
