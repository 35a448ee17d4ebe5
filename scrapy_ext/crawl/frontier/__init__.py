"""The frontier of a crawl: requests go to the platform's queue, come back in batches, run, and are committed.

::

    callbacks, start()                                      Scrapy's engine
          │ enqueue                                               ▲ │ finished
          ▼                                                  next │ ▼
      Enqueuing ─────── direct ─────────► Memory ◄── pop ────── Running
          │                                 ▲                  │    │
          │ send                            │ push      hunger │    │ take
          ▼                                 │                  ▼    ▼
        Slots ◄──── flush, read ─────────── Feeder, Arrivals ◄─┘  Results
          ▲  ▲                                                      │
          │  └──────────────── place, dead letters ─────────────────┤
          │                                                         │ lot
          └───────── flush children, acknowledge ─────────────── Committer

Each arrow is a call, and the part at its start was made with the one at its end. There are two stores: ``slots`` (the
queues on the platform) and ``memory`` (waiting requests, those in the engine, and what is known of the requests that
were sent). The steps between them, in the order of the data:

1. *Enqueue* (``enqueuing``): a new request gets its fingerprint (``identity``), is filtered (``filtering``),
   serialised (``serialize``, ``marks``) and sent to its slot. While memory has every request of the frontier, it also
   goes to memory at once, and its batch is read later (``sent``).
2. *Send* and *read* (``reading``): one task flushes the writers of the slots and reads batches ahead of the downloader.
3. *Run* (``running``): requests leave memory in the order of their hosts (``hosts``); the engine releases them.
4. *Commit* (``results``, :mod:`scrapy_ext.crawl.commit`): a finished request whose batch is known is committed with its
   items, after its children are in their slots. Then its batch is acknowledged.

Not drawn: the feeder and the arrivals report places and unreadable requests to the results, which run failed requests
again from memory. ``end_of_crawl`` finds the end of the crawl in the stores and the committer; ``keep_alive`` puts it
off while others push requests. ``frontier`` makes the parts, those that others are made with first.

Invariants:

- ``Enqueuing.add``, ``Running.next`` and ``PendingItems.add_item`` never wait, and never raise for the content of a
  request or an error of storage: an exception there ends the engine's workers.
- A final error of storage closes the spider, which never waits for it.
"""
