#!/usr/bin/env python3
"""Reads a register through /odata/ with a general client library for OData (python-odata).

    odata_client.py http://127.0.0.1:8080 REGISTER_ID --email admin@... --password-file FILE
"""
import argparse
import datetime

import requests
from odata import ODataService
from odata.exceptions import ODataError

from checks import Checks


def sign_in(base_url, email, password):
    form = {"grant_type": "password", "username": email, "password": password}
    answer = requests.post(f"{base_url}/api/service-auth/token", data=form, timeout=30)
    answer.raise_for_status()
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
    return session


def transactions_by_rest(session, base_url, register_id):
    answer = session.get(f"{base_url}/api/registers/{register_id}/transactions?pageSize=100", timeout=30)
    answer.raise_for_status()
    return answer.json()["items"]


def error_code(query):
    try:
        query.all()
    except ODataError as error:
        return error.code
    return None


def check_reads(checks, service, register_id, known):
    registers, transactions = service.entities["Registers"], service.entities["Transactions"]
    dockets = service.entities["Dockets"]
    found = service.query(registers).filter(registers.id == register_id).one()
    checks.equal("one register by its id", (found.title, found.transactionCount), ("Independently verified", len(known)))
    own = service.query(transactions).filter(transactions.registerId == register_id)
    rows = own.all()
    checks.equal("all transactions, page by page, newest first", [row.txId for row in rows], [one["txId"] for one in known])
    checks.equal("the number of them", own.count(), len(known))
    first = service.query(transactions).get(registerId=register_id, txId=known[0]["txId"])
    checks.equal("one transaction by its key", first.senderAddress, known[0]["senderAddress"])
    heights = [row.docketNumber for row in service.query(dockets).filter(dockets.registerId == register_id)]
    checks.equal("dockets without a gap", heights, list(range(found.height - 1, -1, -1)))
    moment = rows[10].timestamp
    checks.outcome("timestamps are read as such", isinstance(moment, datetime.datetime))
    return own


def check_filters(checks, own, transactions, known):
    senders = {one["senderAddress"] for one in known}
    by_sender = {
        sender: sum(one["senderAddress"] == sender for one in known) for sender in senders
    }
    checks.equal("each sender's own", {one: own.filter(transactions.senderAddress == one).count() for one in senders}, by_sender)

    def ids(query):
        return {row.txId for row in query}

    def expected(holds):
        return {one["txId"] for one in known if holds(one)}

    sender = known[0]["senderAddress"]
    condition = (transactions.senderAddress == sender) | (transactions.docketNumber <= 1)
    checks.equal("or, le", ids(own.filter(condition)), expected(lambda one: one["senderAddress"] == sender or one["docketNumber"] <= 1))
    condition = (transactions.senderAddress != sender) & (transactions.docketNumber > 0)
    checks.equal("and, ne, gt", ids(own.filter(condition)), expected(lambda one: one["senderAddress"] != sender and one["docketNumber"] > 0))
    part = known[3]["txId"][5:9]
    checks.equal("contains", ids(own.filter(transactions.txId.contains(part))), expected(lambda one: part in one["txId"]))
    checks.equal("not contains", ids(own.filter(transactions.txId.lacks(part))), expected(lambda one: part not in one["txId"]))
    start, end = known[4]["txId"][:3], known[5]["txId"][-3:]
    checks.equal("startswith", ids(own.filter(transactions.txId.startswith(start))), expected(lambda one: one["txId"].startswith(start)))
    checks.equal("endswith", ids(own.filter(transactions.txId.endswith(end))), expected(lambda one: one["txId"].endswith(end)))
    checks.equal("null", ids(own.filter(transactions.previousTransactionId.is_null())), expected(lambda one: one["previousTransactionId"] is None))
    ascending = own.order_by(transactions.docketNumber.asc(), transactions.position.asc())
    checks.equal("orderby, skip, top", [row.txId for row in ascending.offset(5).limit(7)], [one["txId"] for one in known[::-1][5:12]])
    selected = own.select(transactions.txId, transactions.docketNumber).limit(1).all()
    checks.equal("select", selected, [{"txId": known[0]["txId"], "docketNumber": known[0]["docketNumber"]}])


def check_refusals(checks, own, service):
    registers, transactions = service.entities["Registers"], service.entities["Transactions"]
    hostile = "' or 1 eq 1 or 'a' eq 'a"
    checks.equal("a literal with quotes finds nothing", service.query(registers).filter(registers.title == hostile).all(), [])
    checks.equal("an unknown property has a code", error_code(own.filter("payload eq null")), "QUERY_INVALID")
    checks.equal("so has an operator that is not there", error_code(own.filter("position add 1 eq 2")), "QUERY_NOT_SUPPORTED")
    checks.equal("so has a page that is too large", error_code(own.limit(101)), "QUERY_INVALID")
    nobody = service.query(transactions).filter(transactions.registerId == "0" * 32)
    checks.equal("registers that the caller may not see are absent", nobody.all(), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("register_id")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    args = parser.parse_args()
    with open(args.password_file, encoding="utf-8") as file:
        session = sign_in(args.base_url, args.email, file.read().strip())
    known = transactions_by_rest(session, args.base_url, args.register_id)
    service = ODataService(f"{args.base_url}/odata/", session=session, reflect_entities=True, quiet_progress=True)
    checks = Checks()
    checks.equal("the metadata names the sets", sorted(service.entities), ["Dockets", "Registers", "Transactions"])
    own = check_reads(checks, service, args.register_id, known)
    check_filters(checks, own, service.entities["Transactions"], known)
    check_refusals(checks, own, service)
    checks.close()


main()
