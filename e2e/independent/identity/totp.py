#!/usr/bin/env python3
"""Codes of an authenticator app, by pyotp and by oathtool.

    totp.py http://127.0.0.1:8080 --email ada@example.org --password-file FILE
"""
import shutil
import subprocess
import time
from pathlib import Path

import pyotp

from client import Checks, Client, arguments

# A code is read at the beginning of its 30 s, so that the next one is the next one until the end.
LATEST_SECOND = 15


def oathtool(secret, at):
    command = ["oathtool", "--totp", "--base32", f"--now=@{int(at)}", secret]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def begin_of_step():
    """A moment at which the present code stays for a while."""
    while time.time() % 30 > LATEST_SECOND:
        time.sleep(0.5)
    return time.time()


def main():
    args = arguments(__doc__).parse_args()
    password = Path(args.password_file).read_text(encoding="utf-8").strip()
    client, checks = Client(args.base_url), Checks()
    client.token = client.sign_in(args.email, password)["access_token"]
    setup = client.post("/api/totp/setup", {})
    secret = setup["secret"]
    totp = pyotp.parse_uri(setup["qrUri"])
    checks.equal("the address of the QR code has the secret", totp.secret, secret)
    checks.equal("six digits every 30 s by SHA-1", (totp.digits, totp.interval, totp.digest().name), (6, 30, "sha1"))
    checks.equal("the account is the address", totp.name, args.email)
    if shutil.which("oathtool"):
        moments = [0, 59, 1111111109, 2000000000, 20000000000, *(time.time() + 977 * n for n in range(20))]
        checks.equal(
            "pyotp and oathtool agree",
            [totp.at(int(at)) for at in moments],
            [oathtool(secret, at) for at in moments],
        )
        code_at = lambda at: oathtool(secret, at)
    else:
        print("skipped: no oathtool")
        code_at = lambda at: totp.at(int(at))

    now = begin_of_step()
    wrong = client.call("POST", "/api/totp/verify", {"code": totp.at(int(now) - 3600)})
    checks.equal("a code of an hour ago does not finish the set-up", wrong[0], 400)
    first = totp.at(int(now))
    client.post("/api/totp/verify", {"code": first})
    client.token = None

    def second_step(code, **more):
        """Signs in with the password and completes it."""
        login_token = client.sign_in(args.email, password)["login_token"]
        return client.call("POST", "/api/auth/verify-2fa", {"login_token": login_token, "code": code, **more})

    checks.equal("the code of the set-up is used", second_step(first)[0], 401)
    checks.equal("a code two steps ahead is refused", second_step(code_at(now + 60))[0], 401)
    checks.equal("a code of two steps ago is refused", second_step(code_at(now - 60))[0], 401)
    status, tokens = second_step(code_at(now + 30))
    checks.outcome("the code of the next step signs in", status == 200 and "access_token" in tokens, (status, tokens))
    checks.equal("and not twice", second_step(code_at(now + 30))[0], 401)
    backup = setup["backupCodes"][0]
    checks.equal("ten backup codes, all different", len(set(setup["backupCodes"])), 10)
    checks.equal("a backup code signs in", second_step(backup, is_backup_code=True)[0], 200)
    checks.equal("and not twice", second_step(backup, is_backup_code=True)[0], 401)
    checks.close()


if __name__ == "__main__":
    main()
