"""Requests over HTTP/1.1 to one server, with little processor time and memory: connections that are kept, answers that
are read into one buffer, and no layer in between.
"""

from scrapy_ext.client.http1.connection import AnswerError, Body
from scrapy_ext.client.http1.connections import Answer, ConnectError, Connections

__all__ = ["Answer", "AnswerError", "Body", "ConnectError", "Connections"]
