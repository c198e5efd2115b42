#!/usr/bin/env python3
"""Follows a register over its hub with a SignalR client for Python (pysignalr).

    hub_client.py http://127.0.0.1:8080 REGISTER_ID --email admin@... --password-file FILE
"""
import argparse
import asyncio
import datetime
import re

import requests
from pysignalr.client import SignalRClient

from checks import Checks

DEADLINE_SECONDS = 60
EVENTS = ("DocketSealed", "DocketConfirmed", "RegisterHeightUpdated", "TransactionConfirmed", "RegisterCreated")


def sign_in(base_url, email, password):
    form = {"grant_type": "password", "username": email, "password": password}
    answer = requests.post(f"{base_url}/api/service-auth/token", data=form, timeout=30)
    answer.raise_for_status()
    return answer.json()["access_token"]


def get(base_url, token, path):
    answer = requests.get(f"{base_url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=30)
    answer.raise_for_status()
    return answer.json()


def transactions_by_rest(base_url, token, register_id):
    items = get(base_url, token, f"/api/registers/{register_id}/transactions?pageSize=100")["items"]
    return {item["txId"] for item in items}


class Follower:
    """A connection to the hub, with what it heard."""

    def __init__(self, base_url, token):
        self.heard = []
        # An access_token_factory of this library is read after the negotiation alone.
        self.client = SignalRClient(f"{base_url}/hubs/register", headers={"Authorization": f"Bearer {token}"})
        self.opened = asyncio.Event()
        for name in EVENTS:
            self.client.on(name, self.hear(name))
        self.client.on_open(self.open)
        # Without one, this library ends the connection with an answer that is an error.
        self.client.on_error(self.refused)

    async def open(self):
        self.opened.set()

    async def refused(self, _message):
        pass

    def hear(self, name):
        async def listener(arguments):
            self.heard.append((name, arguments))

        return listener

    async def invoke(self, method, *arguments):
        answered = asyncio.get_running_loop().create_future()

        async def on_answer(message):
            if not answered.done():
                answered.set_result(message)

        await self.client.send(method, list(arguments), on_answer)
        return await asyncio.wait_for(answered, DEADLINE_SECONDS)

    def of(self, name):
        return [arguments for heard, arguments in self.heard if heard == name]


def in_first_order(values):
    return list(dict.fromkeys(values))


async def follow(checks, base_url, token, register_id):
    follower = Follower(base_url, token)
    running = asyncio.create_task(follower.client.run())
    try:
        await asyncio.wait_for(follower.opened.wait(), DEADLINE_SECONDS)
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        answer = await follower.invoke("SubscribeToRegister", register_id, since.isoformat())
        checks.outcome("subscribing with `since` replays", (answer.result or {}).get("replayed", 0) > 0)
        checks.equal("the replay is complete", (answer.result or {}).get("complete"), True)
        judge_events(checks, follower, transactions_by_rest(base_url, token, register_id), register_id)
        refused = await follower.invoke("SubscribeToRegister", "f" * 32)
        checks.outcome("a register of others is refused", str(refused.error).startswith("Unauthorized: "))
        unknown = await follower.invoke("Shout", "x")
        checks.equal("an unknown method is named so", unknown.error, "Method not found.")
    finally:
        running.cancel()


def judge_events(checks, follower, expected, register_id):
    transactions = in_first_order(arguments[1] for arguments in follower.of("TransactionConfirmed"))
    checks.equal("every transaction is confirmed", set(transactions), expected)
    dockets = in_first_order(arguments[1] for arguments in follower.of("DocketSealed"))
    checks.equal("dockets come in order, without a gap", dockets, list(range(len(dockets))))
    checks.outcome("events name the register", all(arguments[0] == register_id for _, arguments in follower.heard))
    plain = all(isinstance(one, (str, int)) for _, arguments in follower.heard for one in arguments)
    checks.outcome("events carry no objects", plain)
    times = [arguments[-2] for _, arguments in follower.heard]
    checks.outcome("events have a time", all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", one) for one in times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("base_url")
    parser.add_argument("register_id")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    arguments = parser.parse_args()
    with open(arguments.password_file, encoding="utf-8") as file:
        password = file.read().rstrip("\r\n")
    checks = Checks()
    token = sign_in(arguments.base_url, arguments.email, password)
    asyncio.run(follow(checks, arguments.base_url, token, arguments.register_id))
    checks.close()


main()
