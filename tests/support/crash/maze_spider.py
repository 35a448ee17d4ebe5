"""The spider of the maze: it takes the steps that a page gives it. A test writes it into a project."""

import asyncio
import json
from datetime import datetime, timezone

import scrapy
from scrapy.exceptions import DropItem


class Picky:
    """A pipeline that drops what is marked."""

    def process_item(self, item):
        if item.get("drop"):
            raise DropItem("as marked")
        return item


class MazeSpider(scrapy.Spider):
    """Arguments: ``maze``, JSON with the ports of the site and what to start with; number of ``start_items``."""

    name = "maze"
    maze = "{}"
    start_items = 0

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.site = json.loads(self.maze)

    async def start(self):
        for number in range(int(self.start_items)):
            yield {"text": f"start {number}"}
        for link in self.site["start"]:
            yield self.asked(link)

    def asked(self, link, response=None):
        """The request of a link."""
        port = self.site["closed" if link.get("closed") else "port"]
        arguments = {"place": link["place"]} if "place" in link else {}
        if "arguments" in link:
            number = link["arguments"]
            arguments["when"] = datetime(2026, 1, 2, 3, 4, number % 60, tzinfo=timezone.utc)
            arguments["nested"] = (number, ("a", b"\xff"))
            arguments["several"] = {number, number + 1}
        meta = {"on_failure": link["errback"]} if "errback" in link else {}
        post = {"method": "POST", "body": bytes([0xFF, 0x00, link["post"]])} if "post" in link else {}
        return scrapy.Request(
            f"http://{link['host']}:{port}{link['path']}",
            callback=self.local() if link.get("local") else self.parse,
            errback=self.failed if "errback" in link else None,
            cb_kwargs=arguments,
            meta=response.meta if link.get("copy_meta") else meta,
            priority=link.get("priority", 0),
            dont_filter=link.get("dont_filter", False),
            **post,
        )

    def local(self):
        """A callback that no storage can hold, so that its request stays in this process."""
        return lambda response: self.parse(response)  # noqa: PLW0108 - a bound method can be stored

    async def parse(self, response, **arguments):
        page = response.json()
        suffix = came_through(arguments, page["body"])
        for kind, what, *more in page["steps"]:
            if kind == "item":
                length = more[0]
                yield {"text": f"{what} +{length}{suffix}" if length else what + suffix, "pad": "x" * length}
            elif kind == "drop":
                yield {"text": what, "drop": True}
            elif kind == "follow":
                yield self.asked(what, response)
            elif kind == "sleep":
                await asyncio.sleep(what)
            elif kind == "inline":
                inline = await self.crawler.engine.download_async(self.asked(what))
                yield {"text": inline.json()["steps"][0][1] + suffix}
            elif kind == "raise":
                raise ValueError(what)

    def failed(self, failure):
        for kind, what, *_ in failure.request.meta["on_failure"]:
            yield {"text": what} if kind == "item" else self.asked(what)


def came_through(arguments, body):
    """Fields of a request that the platform kept, as text."""
    text = f" at {arguments['place']}" if "place" in arguments else ""
    if body:
        text += f" for {body}"
    if "when" in arguments:
        assert isinstance(arguments["several"], set)
        text += f" with {arguments['when'].isoformat()} {arguments['nested']!r} {sorted(arguments['several'])}"
    return text
