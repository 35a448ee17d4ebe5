"""Tools for agents by the Model Context Protocol: at ``/mcp`` of a server, and over stdio by ``scrapy platform mcp``.

``tools`` defines each tool once. A tool calls the two services through the port in ``services``: in a server by
requests to the application of its own process (``loopback``), in the command by the clients of this package. So a
tool has the rights, limits and checks of the same calls from outside. ``sdk`` alone imports the SDK of the protocol,
which takes half a second.
"""
