#!/usr/bin/env python3
"""A small economy: members of a guild get points and pay each other. Prints what was refused, and why.

    export FENCEPOST_URL=http://127.0.0.1:8080 FENCEPOST_API_KEY=fp_…   # scopes transfer:read, :write and :operate
    python3 economy.py [GUILD]

Needs nothing but Python 3. A guild needs no preparation: without GUILD, the script takes one that was never used.
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request

ANN, BEN, CHO, DAN = "1", "2", "3", "4"
NAMES = {ANN: "Ann", BEN: "Ben", CHO: "Cho", DAN: "Dan"}


class Refused(Exception):
    """An error of Fencepost: `code` is for programs, the text for people."""

    def __init__(self, status, problem, retry_after):
        super().__init__(problem["detail"])
        self.status, self.code, self.problem, self.retry_after = status, problem["code"], problem, retry_after


class Fencepost:
    def __init__(self, url, api_key):
        self.url, self.api_key = url.rstrip("/"), api_key

    def call(self, method, path, body=None, patience=30):
        """The answer. Waits while Fencepost is busy, for at most `patience` seconds. Raises Refused.

        A request that moves points has an idempotencyKey, so it is safe to repeat: also when its answer was lost.
        """
        end = time.monotonic() + patience
        named = method == "GET" or "idempotencyKey" in (body or {})
        while True:
            try:
                return self._once(method, path, body)
            except Refused as refused:
                # 429 and 503 mean that nothing happened, except outcome_unknown: then only a named request is repeated.
                if refused.status not in (429, 503) or (refused.code == "outcome_unknown" and not named):
                    raise
                delay = refused.retry_after
                if time.monotonic() + delay > end:
                    raise
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                delay = 1
                if not named or time.monotonic() + delay > end:
                    raise
            time.sleep(delay)

    def _once(self, method, path, body):
        request = urllib.request.Request(
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.headers.get_content_type() != "application/problem+json":
                raise  # not Fencepost's: a proxy's page
            raise Refused(error.code, json.load(error), int(error.headers.get("Retry-After", 1))) from None


class Economy:
    def __init__(self, fencepost, guild):
        self.fencepost, self.guild = fencepost, guild

    def mint(self, member, amount, reason):
        # The key makes it safe to run the step again: the same key is the same payment, and is made once.
        body = {"amount": amount, "reason": reason, "idempotencyKey": f"{self.guild}-{reason}"}
        made = self.fencepost.call("POST", f"/guilds/{self.guild}/accounts/{member}/mint", body)
        print(f"{NAMES[member]} gets {amount} ({reason}) and has {made['balance']}")

    def pay(self, payer, payee, amount, reason, mode="sync"):
        """The transfer; None if it was refused."""
        body = {
            "guildId": self.guild, "initiatorId": payer, "targetId": payee, "amount": amount,
            "reason": reason, "mode": mode, "idempotencyKey": f"{self.guild}-{reason}",
        }
        what = f"{NAMES[payer]} pays {NAMES[payee]} {amount} for {reason}"
        try:
            made = self.fencepost.call("POST", "/transfers", body)
        except Refused as refused:
            print(f"{what}: refused, {refused.code}. {explain(refused)}")
            return None
        print(f"{what}: {made['status']}")
        return made

    def wait(self, transfer):
        """The transfer when it has ended."""
        for _ in range(600):
            now = self.fencepost.call("GET", f"/transfers/{transfer['transferId']}")
            if now["status"] in ("completed", "rejected"):
                return now
            time.sleep(0.1)
        raise TimeoutError(f"transfer {transfer['transferId']} still has status {now['status']}")


def explain(refused):
    """What the members of the problem document say, by its code. `str(refused)` says it for every code."""
    facts = refused.problem
    if refused.code == "insufficient_balance":
        return f"The account has {facts['balance']} and needs {facts['required']}."
    if refused.code == "daily_limit":
        return f"{facts['used']} of {facts['limit']} are used up today."
    if refused.code == "cooldown":
        return f"The next payment may be made at {facts['until']}, in {refused.retry_after} s."
    return str(refused)


def main():
    guild = sys.argv[1] if len(sys.argv) > 1 else str(time.time_ns() // 1000)
    economy = Economy(Fencepost(os.environ["FENCEPOST_URL"], os.environ["FENCEPOST_API_KEY"]), guild)
    settings = f"/guilds/{guild}/settings"
    rules = economy.fencepost.call("GET", settings)
    print(f"Guild {guild}: {rules['dailyLimit']} a day, {rules['cooldownSeconds']} s between two payments")

    economy.mint(ANN, "1000", "prize")
    economy.pay(ANN, BEN, "200", "rent")
    economy.pay(ANN, BEN, "200", "rent")  # the same key: answered with the same transfer, and not paid twice
    economy.pay(ANN, CHO, "50", "dinner")  # too soon
    economy.pay(BEN, CHO, "300", "a horse")  # too much
    economy.mint(DAN, "800", "salary")
    economy.pay(DAN, ANN, "600", "a house")  # over the day's limit
    economy.pay(DAN, DAN, "1", "nothing")  # not a payment

    economy.fencepost.call("PATCH", settings, {"cooldownSeconds": 0, "dailyLimit": "700", "reason": "market day"})
    print("Market day: 700 a day, no waiting")
    economy.pay(ANN, CHO, "50", "dinner")
    economy.pay(DAN, ANN, "600", "a house")

    # In the pool a transfer waits until it can be made: here, until Ben has the money.
    horse = economy.pay(BEN, CHO, "300", "a horse", mode="pool")
    economy.mint(BEN, "150", "harvest")
    print(f"The horse: {economy.wait(horse)['status']}")

    for member, name in NAMES.items():
        account = economy.fencepost.call("GET", f"/guilds/{guild}/accounts/{member}")
        print(f"{name} has {account['balance']}")
    audit = economy.fencepost.call("GET", "/transfers/audit")
    print("The audit of all guilds:", "every point is where it should be" if audit["ok"] else audit["findings"])


if __name__ == "__main__":
    main()
