#!/usr/bin/env python3
"""Enrols authenticator apps and signs in with codes that pyotp and oathtool compute, and with backup codes.

    totp_agreement.py http://127.0.0.1:8080 --email admin@... --password-file FILE --installation NAME [--old-codes]

`--old-codes` also waits until an unused code is two steps old, for a minute at most. Without oathtool (Debian's package
of this name) pyotp computes every code.
"""
import argparse
import base64
import datetime
import shutil
import subprocess
import time

import jwt
import pyotp

from accounts import People, Rest
from checks import Checks

STEP_SECONDS = 30
WRONG_SETUP = (400, "WRONG_CODE")
WRONG_SIGN_IN = (401, "WRONG_SECOND_FACTOR")


def by_pyotp(secret, step):
    return pyotp.TOTP(secret).at(step * STEP_SECONDS)


def by_oathtool(secret, step):
    now = datetime.datetime.fromtimestamp(step * STEP_SECONDS, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    arguments = ["oathtool", "--totp", "--base32", "--now", now, "-"]
    return subprocess.run(arguments, input=secret, capture_output=True, text=True, check=True).stdout.strip()


def programs():
    """The functions that compute codes, by the name of the program."""
    if shutil.which("oathtool") is None:
        print("left out: oathtool: not installed")
        return {"pyotp": by_pyotp}
    return {"pyotp": by_pyotp, "oathtool": by_oathtool}


def step_with(seconds):
    """The present time step; waits for the next one when fewer seconds are left, so that calls happen within it."""
    left = STEP_SECONDS - time.time() % STEP_SECONDS
    if left < seconds:
        time.sleep(left + 0.1)
    return int(time.time() // STEP_SECONDS)


class App:
    """An authenticator app whose codes one program computes."""

    def __init__(self, rest, person, code_of):
        self.rest, self.person, self.code_of = rest, person, code_of
        self.token = person.token()
        self.setup = rest.expect(200, "POST", "/api/totp/setup", token=self.token)
        self.secret = self.setup["secret"]

    def confirm(self, step):
        body = {"code": self.code_of(self.secret, step)}
        return self.rest.send("POST", "/api/totp/verify", body, self.token)

    def sign_in(self, step, login_token=None):
        body = {"login_token": login_token or self.person.login_token(), "code": self.code_of(self.secret, step), "method": "totp"}
        return self.rest.send("POST", "/api/auth/verify-2fa", body)

    def backup(self, code):
        body = {"loginToken": self.person.login_token(), "backupCode": code}
        return self.rest.send("POST", "/api/totp/backup-validate", body)


def judge_uri(checks, app, installation):
    """The otpauth URI has what the answer says, read by pyotp."""
    read = pyotp.parse_uri(app.setup["qrUri"])
    checks.equal("pyotp reads the URI as TOTP", type(read), pyotp.TOTP)
    checks.equal("its secret is that of the answer", read.secret, app.secret)
    checks.equal("its issuer and account", (read.issuer, read.name), (installation, app.person.email))
    checks.equal("six digits of 30 s by SHA-1", (read.digits, read.interval, read.digest().name), (6, STEP_SECONDS, "sha1"))
    checks.equal("the secret has 160 bits", len(base64.b32decode(app.secret)), 20)
    sides = {len(row) for row in app.setup["qrCode"]}
    checks.equal("the QR code is a square", sides, {len(app.setup["qrCode"])})


def judge_setup(checks, app, name):
    """Codes outside one step of skew confirm nothing; a code of the step before does."""
    step = step_with(12)
    for skew in (-3, -2, 2, 3):
        checks.equal(f"{name}: a set-up by a code {skew:+} steps away is refused", app.confirm(step + skew).code, WRONG_SETUP)
    checks.equal(f"{name}: a set-up by the code of the step before", app.confirm(step - 1).status, 200)
    checks.equal(f"{name}: it ends once", app.confirm(step).code, (409, "TOTP_ALREADY_ENABLED"))
    status = app.rest.expect(200, "GET", "/api/totp/status", token=app.token)
    checks.equal(f"{name}: the status", (status["isEnabled"], status["backupCodesRemaining"]), (True, len(app.setup["backupCodes"])))


def judge_sign_in(checks, app, name):
    """A code signs in once, within one step of skew, and no earlier one after it."""
    step = step_with(12)
    login = app.person.login_token()
    wrong = app.sign_in(step + 2, login)
    checks.equal(f"{name}: a code of two steps ahead is refused", wrong.code, WRONG_SIGN_IN)
    first = app.sign_in(step, login)
    if checks.outcome(f"{name}: the present code signs in", first.status == 200, first):
        claims = jwt.decode(first.body["access_token"], options={"verify_signature": False})
        checks.equal(f"{name}: the token is of a strong proof", (claims["acr"], claims["amr"]), ("strong", ["pwd", "otp", "mfa"]))
    checks.equal(f"{name}: the login token acts once", app.sign_in(step + 1, login).code, (401, "INVALID_LOGIN_TOKEN"))
    checks.equal(f"{name}: a code used twice is refused", app.sign_in(step).code, WRONG_SIGN_IN)
    checks.equal(f"{name}: the code of the step before is refused after it", app.sign_in(step - 1).code, WRONG_SIGN_IN)
    ahead = {"loginToken": app.person.login_token(), "code": app.code_of(app.secret, step + 1)}
    checks.equal(f"{name}: one step ahead signs in", app.rest.send("POST", "/api/totp/validate", ahead).status, 200)
    checks.equal(f"{name}: and counts as used", app.sign_in(step + 1).code, WRONG_SIGN_IN)


def judge_backup(checks, app):
    """Each backup code signs in once, in any spelling, and only those of the set-up do."""
    codes = app.setup["backupCodes"]
    checks.equal("ten backup codes that differ", len(set(codes)), 10)
    answer = app.backup(codes[0])
    checks.equal("a backup code signs in", (answer.status, answer.body.get("remainingCodes")), (200, 9))
    checks.equal("it acts once", app.backup(codes[0]).code, WRONG_SIGN_IN)
    answer = app.backup(codes[1].replace("-", "").lower())
    checks.equal("a second one, in another spelling", (answer.status, answer.body.get("remainingCodes")), (200, 8))
    checks.equal("a code of another shape is refused", app.backup("AAAA-AAAA").code, WRONG_SIGN_IN)
    status = app.rest.expect(200, "GET", "/api/totp/status", token=app.token)
    checks.equal("the status counts those that are left", status["backupCodesRemaining"], 8)


def judge_old_code(checks, app):
    """An unused code is refused once it is two steps old, although it is later than the last one used."""
    used = step_with(12)
    checks.equal("an app for an old code is confirmed", app.confirm(used).status, 200)
    while time.time() < (used + 3) * STEP_SECONDS + 1:
        time.sleep(1)
    checks.equal("an unused code of two steps before is refused", app.sign_in(used + 1).code, WRONG_SIGN_IN)
    checks.equal("that of one step before signs in", app.sign_in(used + 2).status, 200)


def judge_agreement(checks, codes, secret):
    """The programs agree with each other, so that a difference from the product is the product's."""
    steps = [0, 1, 37_037_036, 37_037_037, 41_152_263, 66_666_666]
    differing = [step for step in steps if len({code_of(secret, step) for code_of in codes.values()}) > 1]
    checks.nothing(f"{' and '.join(codes)} agree on {len(steps)} steps", differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("--email", required=True)
    parser.add_argument("--password-file", required=True)
    parser.add_argument("--installation", required=True)
    parser.add_argument("--old-codes", action="store_true")
    args = parser.parse_args()
    checks, rest, codes = Checks(), Rest(args.base_url), programs()
    people = People(rest, args.email, args.password_file)
    apps = {name: App(rest, people.person(f"app-{name}"), code_of) for name, code_of in codes.items()}
    judge_uri(checks, apps["pyotp"], args.installation)
    judge_agreement(checks, codes, apps["pyotp"].secret)
    for name, app in apps.items():
        judge_setup(checks, app, name)
        judge_sign_in(checks, app, name)
    judge_backup(checks, apps["pyotp"])
    if args.old_codes:
        judge_old_code(checks, App(rest, people.person("old"), codes.get("oathtool", by_pyotp)))
    checks.close()


if __name__ == "__main__":
    main()
