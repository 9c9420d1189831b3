"""A mail server (aiosmtpd) that says on its standard output, a line each, what it got. How it answers stands in a file:
"ok", a reply such as "550 5.1.1 no such user" or "451 4.3.0 later", which may end in "for ADDRESS", "drop" (it hangs up in
the middle of DATA), "keep" (it takes the mail and never says so), or "drip" (it begins to say so, a byte a second).

smtp_server.py MODE_FILE [CERTIFICATE KEY]: with a certificate, mail must come by STARTTLS and with a password.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    def __init__(self, mode_file):
        self.mode_file = mode_file

    async def handle_RCPT(self, server, session, envelope, address, options):
        mode = open(self.mode_file).read().strip()
        reply, _, only = mode.partition(" for ")
        if mode[:1].isdigit() and only in ("", address):
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mode = open(self.mode_file).read().strip()
        if mode == "drop":
            server.transport.abort()
            return "250 never heard"
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        part = lambda kind: getattr(message.get_body((kind,)), "get_content", lambda: "")()
        got = {
            "to": envelope.rcpt_tos,
            "from": envelope.mail_from,
            "headers": [[name, str(value)] for name, value in message.items()],
            "text": part("plain"),
            "html": part("html"),
            "files": [[each.get_filename(), each.get_content()] for each in message.iter_attachments()],
        }
        print(json.dumps(got), flush=True)
        while mode in ("keep", "drip"):
            await asyncio.sleep(1)
            if mode == "drip":
                server.transport.write(b"2")
        return "250 2.0.0 queued as TEST"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"tollgate", b"s3cret"), handled=False)


async def main():
    mode_file, *tls = sys.argv[1:]
    options = {}
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*tls)
        options = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": authenticate}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(Handler(mode_file), loop=loop, **options), "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


asyncio.run(main())
