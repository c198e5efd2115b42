"""The REST interface of an installation for a client in any language: signing in, reading, submitting."""
import json
import time
import urllib.error
import urllib.parse
import urllib.request

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger_formats import Refused, b64, jcs, ledger_now, raw_public_key, sha256, signing_digest, transaction_id, unb64


class Api:
    def __init__(self, base, email, password):
        self.base = base.rstrip("/")
        form = urllib.parse.urlencode({"grant_type": "password", "username": email, "password": password})
        answer = self.call("POST", "/api/service-auth/token", form.encode(), "application/x-www-form-urlencoded")
        self.token = json.loads(answer)["access_token"]

    def call(self, method, path, body=None, content_type="application/json"):
        headers = {"Accept": "application/json, text/plain, */*"}
        if body is not None:
            headers["Content-Type"] = content_type
        if hasattr(self, "token"):
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.base + path, data=body, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from None

    def get(self, path):
        return json.loads(self.call("GET", path))

    def post(self, path, value):
        return json.loads(self.call("POST", path, json.dumps(value).encode()))

    def pages(self, path):
        """All items of a list, page by page."""
        page, more = 1, True
        while more:
            separator = "&" if "?" in path else "?"
            answer = self.get(f"{path}{separator}page={page}&pageSize=100")
            yield from answer["items"]
            page, more = page + 1, answer["hasMore"]


def submit(api, register):
    """Signs one Action transaction with a key of its own and waits until it is sealed."""
    key = Ed25519PrivateKey.generate()
    public = raw_public_key(key.public_key())
    payload = {"made-by": "an independent client", "n": 1}
    now = ledger_now()
    envelope = {"registerId": register, "blueprintId": "independent", "actionId": "1", "createdAt": now, "metadata": {}}
    envelope["payloadHash"] = sha256(jcs(payload)).hex()
    tx_id = transaction_id(envelope, [public])
    signature = b64(key.sign(signing_digest(tx_id, envelope["payloadHash"])))
    api.post(
        "/api/v1/transactions/validate",
        {
            "TransactionId": tx_id,
            "RegisterId": register,
            "BlueprintId": envelope["blueprintId"],
            "ActionId": envelope["actionId"],
            "Payload": payload,
            "PayloadHash": envelope["payloadHash"],
            "Signatures": [{"PublicKey": public, "SignatureValue": signature, "Algorithm": "ED25519"}],
            "CreatedAt": now,
            "Metadata": {},
        },
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if api.get(f"/api/registers/{register}/transactions/{tx_id}")["status"] == "confirmed":
            return tx_id
        time.sleep(0.05)
    raise Refused(f"{tx_id} was not confirmed within 20 s")


def collect(api, register):
    """Everything the checks need, as the interface returns it; repeated when a docket is sealed in the meantime."""
    for _ in range(10):
        evidence = collect_once(api, register)
        if evidence["said"]["register"]["height"] == len(evidence["dockets"]):
            return evidence
    raise Refused("the register seals dockets during every attempt to read it")


def collect_once(api, register):
    base = f"/api/registers/{register}"
    listed = api.pages(f"{base}/dockets?order=asc")
    dockets, records, payloads, proofs = [api.get(f"{base}/dockets/{d['docketNumber']}") for d in listed], {}, {}, {}
    for docket in dockets:
        for tx_id in docket["transactionIds"]:
            records[tx_id] = api.call("GET", f"{base}/transactions/{tx_id}/record")
            payloads[tx_id] = unb64(api.get(f"{base}/transactions/{tx_id}")["payload"])
    for docket in (dockets[0], dockets[-1]):
        tx_id = docket["transactionIds"][-1]
        proofs[tx_id] = (api.get(f"{base}/transactions/{tx_id}/inclusion-proof"), docket)
    note = api.call("GET", f"{base}/checkpoint").decode()
    vkey = api.call("GET", f"{base}/checkpoint/key").decode().strip()
    said = {
        "roster": api.get(f"{base}/governance/roster"),
        "proposals": list(api.pages(f"{base}/governance/proposals")),
        "policy": api.get(f"{base}/policy"),
        "policies": list(api.pages(f"{base}/policy/history")),
        "cryptoPolicy": api.get(f"{base}/crypto-policy"),
        "cryptoPolicies": list(api.pages(f"{base}/crypto-policy/history")),
        "validators": api.get(f"/api/validators/{register}"),
        "approved": api.get(f"{base}/validators/approved"),
        "register": api.get(base),
    }
    evidence = {"dockets": dockets, "records": records, "payloads": payloads, "proofs": proofs}
    return {**evidence, "note": note, "vkey": vkey, "said": said}
