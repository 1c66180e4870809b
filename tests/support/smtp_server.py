"""The SMTP server of test::SmtpServer: aiosmtpd, which misbehaves by rules that a test may change at any time.

    smtp_server.py SETTINGS.json

The folder of the settings also has
    rules.json   written by the test and read before each step of a dialogue; see Rule in smtp_server.hpp
    log.jsonl    one line for each connection, each command and each mail that was taken, in order
    N.eml        the text of the Nth mail, as it was before dot-stuffing
"""

import asyncio
import collections
import json
import pathlib
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

settings_file = pathlib.Path(sys.argv[1])
settings = json.loads(settings_file.read_text())
folder = settings_file.parent
log_file = folder / "log.jsonl"

TAKEN = "250 2.0.0 taken"


class Log:
    """Continues the log of an earlier run."""

    def __init__(self):
        self.counts = collections.Counter()
        if log_file.exists():
            for line in log_file.read_text().splitlines():
                self.counts[json.loads(line)["kind"]] += 1
        self.file = log_file.open("a")

    def add(self, kind, **fields):
        self.counts[kind] += 1
        self.file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self.file.flush()
        return self.counts[kind]


class Rules:
    def __init__(self):
        self.version = 0
        self.rules = []
        self.applied = collections.Counter()

    def refresh(self):
        now = json.loads((folder / "rules.json").read_text())
        if now["version"] != self.version:
            self.version, self.rules = now["version"], now["rules"]
            self.applied.clear()

    def take(self, step, recipients):
        """The rule that applies now, and counts it; None if the server behaves."""
        self.refresh()
        for number, rule in enumerate(self.rules):
            if rule["at"] != step or (rule["recipient"] and rule["recipient"] not in recipients):
                continue
            key = (number, tuple(recipients) if rule["eachRecipient"] else ())
            if self.applied[key] < rule["times"]:
                self.applied[key] += 1
                return rule
        return None


log = Log()
rules = Rules()


class Server(SMTP):
    """One connection."""

    def __init__(self, **options):
        super().__init__(Handler(), **options)
        for verb, method in list(self._smtp_methods.items()):
            self._smtp_methods[verb] = self.command(verb, method)

    def command(self, verb, method):
        async def run(arg):
            log.add("command", connection=self.number, line=verb if arg is None else f"{verb} {arg}")
            recipients = self.envelope.rcpt_tos
            if verb == "RCPT":
                recipients = [arg.partition("<")[2].partition(">")[0]]
            if await self.misbehaves(verb, recipients):
                return
            if verb == "DATA" and await self.misbehaves_in_body():
                return
            await method(arg)

        return run

    async def _handle_client(self):
        self.number = log.add("connection")
        if not await self.misbehaves("connect", []):
            await super()._handle_client()

    async def misbehaves(self, step, recipients):
        rule = rules.take(step, recipients)
        if rule:
            await self.apply(rule)
        return rule is not None

    async def misbehaves_in_body(self):
        rule = rules.take("body", self.envelope.rcpt_tos)
        if rule:
            await self.push("354 End data with <CR><LF>.<CR><LF>")
            await self._reader.readexactly(10)
            await self.apply(rule)
        return rule is not None

    async def apply(self, rule):
        if rule["fault"] == "hang":
            await asyncio.Event().wait()  # until the client leaves
        if rule["fault"] == "reply":
            await self.push(rule["reply"])
        if rule["fault"] == "drop" or rule["reply"].startswith("421") or rule["at"] == "connect":
            await self.leave(abruptly=rule["fault"] == "drop")

    async def leave(self, abruptly):
        if abruptly:
            self.transport.abort()
        else:
            self.transport.close()
        await asyncio.Event().wait()  # the end of the connection cancels this

    async def push(self, status):
        if status is None:  # a rule has replied
            return
        await super().push(status)
        if status == TAKEN:
            await self.misbehaves("idle", [])


class Handler:
    # The mail is complete. The result is the reply.
    async def handle_DATA(self, server, session, envelope):
        if await server.misbehaves("end", envelope.rcpt_tos):
            return None
        number = log.counts["mail"] + 1
        (folder / f"{number}.eml").write_bytes(envelope.original_content)
        log.add("mail", connection=server.number, sender=envelope.mail_from, recipients=envelope.rcpt_tos)
        return None if await server.misbehaves("taken", envelope.rcpt_tos) else TAKEN


def authenticate(server, session, envelope, mechanism, data):
    login = LoginPassword(settings["username"].encode(), settings["password"].encode())
    return AuthResult(success=data == login, handled=False)


def tls_context():
    if not settings["certificate"]:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(settings["certificate"], settings["key"])
    return tls


async def serve():
    tls, implicit, login = tls_context(), settings["implicitTls"], bool(settings["username"])

    def session():
        return Server(hostname="mail.test", tls_context=None if implicit else tls,
                      authenticator=authenticate if login else None, auth_required=login,
                      auth_require_tls=not login or bool(tls and not implicit))

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", settings["port"],
                                                            ssl=tls if implicit else None)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(serve())
