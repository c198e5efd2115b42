#!/usr/bin/env python3
"""Makes credentials with issuers of others, good ones and malformed ones, for the verifiers of Chancery.

    foreign_credentials.py FILE

FILE becomes JSON: `atMs`, and for each format keys, `good` (with their claims) and `bad` (with one fault and the code of its
refusal). `foreign_sd_jwts.py` makes SD-JWT VCs with `sd-jwt`, `foreign_mdocs.py` mdocs with `pymdoccbor`.

Needs the packages `sd-jwt` and `pymdoccbor`.
"""
import json
import sys
import time

import foreign_mdocs
import foreign_sd_jwts
from checks import Checks


def main():
    now, checks = int(time.time()), Checks()
    made = {"atMs": now * 1000, "sdJwts": foreign_sd_jwts.made(now), "mdocs": foreign_mdocs.made()}
    for name in ("sdJwts", "mdocs"):
        names = [each["name"] for each in made[name]["bad"]]
        checks.outcome(f"{name}: {len(names)} malformed ones, each named by its fault", len(names) == len(set(names)))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(made, file)
    checks.close()


if __name__ == "__main__":
    main()
