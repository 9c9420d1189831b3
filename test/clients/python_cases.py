"""What the calls of the official Python clients share: their setup, sync and async in one form, and how cases are reported.

A program is given BASE_URL, and {"key", "poor_key", "markers": {script: marker}} as JSON on stdin. It prints one JSON line
per case: {"case", "error": null | text}. The tags of the markers are the caller's, so that it can read the node's records;
everything else of a client is left as it is.
"""

import asyncio
import inspect
import json
import sys
import time
import traceback

BASE_URL = sys.argv[1]
SETUP = json.load(sys.stdin)
KEY = SETUP["key"]


def marker(script, tag):
    return SETUP["markers"].get(f"{script}/{tag}", f"{script}#python-{tag}")


class Kind:
    """A client's blocking or asynchronous class; every case is written against `await`."""

    def __init__(self, name, made):
        self.name = name
        self.is_async = name == "async"
        self.made = made

    def client(self, key=KEY):
        return self.made(base_url=BASE_URL, api_key=key)


async def settled(value):
    """The value itself, or what it resolves to."""
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    """The items of a sync or async iterable."""
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            yield item
    else:
        for item in stream:
            yield item


async def final(manager, name):
    """What the stream helper puts together, by the name of its method."""
    if hasattr(manager, "__aenter__"):
        async with manager as stream:
            return await getattr(stream, name)()
    with manager as stream:
        return getattr(stream, name)()


async def refused(expected, call, *positional, **named):
    """The client's error, which is of exactly the type `expected`."""
    try:
        await settled(call(*positional, **named))
    except Exception as error:
        assert type(error) is expected, repr(error)
        assert error.request_id, "a request id"
        return error
    raise AssertionError(f"expected {expected.__name__}")


async def leave(kind, stream):
    """Reads five events of an endless stream, and closes it."""
    events = 0
    async for _ in each(stream):
        events += 1
        if events == 5:
            break
    print(json.dumps({"aborted": kind.name, "at": time.time() * 1000}), flush=True)
    await settled(stream.close())


def run(cases, sync, later):
    """Each case with the blocking client's class and the asynchronous one's."""

    async def main():
        for kind in (Kind("sync", sync), Kind("async", later)):
            for case in cases:
                error = None
                try:
                    await case(kind)
                except Exception:
                    error = traceback.format_exc(limit=3)
                print(json.dumps({"case": f"{case.__name__} {kind.name}", "error": error}), flush=True)

    asyncio.run(main())
