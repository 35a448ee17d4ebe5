"""A site that bans two of three addresses, and three proxies with these addresses, on port 8610 of this machine."""

import asyncio

PORT = 8610
PROXIES = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
BANNED = PROXIES[:2]
BAN = "<title>Access to this page has been denied</title><div id='px-captcha'>Press & Hold</div>"


async def site(reader, writer):
    """Answer one request: with the page, or with a page to solve a CAPTCHA."""
    path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    banned = writer.get_extra_info("peername")[0] in BANNED
    status, page = ("403 Forbidden", BAN) if banned else ("200 OK", f"<h1>Page {path}</h1>")
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close\r\n\r\n"
    writer.write((head + page).encode())
    await writer.drain()
    writer.close()


async def proxy(reader, writer):
    """Open a tunnel from the proxy's own address."""
    address = writer.get_extra_info("sockname")[0]
    target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
    host, _, port = target.rpartition(":")
    there, back = await asyncio.open_connection(host, int(port), local_addr=(address, 0))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await asyncio.gather(relay(reader, back), relay(there, writer), return_exceptions=True)


async def relay(source, sink):
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.close()


async def main():
    await asyncio.start_server(site, "127.0.0.1", PORT)
    for address in PROXIES:
        await asyncio.start_server(proxy, address, PORT)
    print(f"http://localhost:{PORT}/ bans {' and '.join(BANNED)}", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
