"""Counting of checks, and the closing line that the runner reads."""
import sys


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def outcome(self, what, holds, detail=""):
        """Prints and counts one check; `detail` is the actual result."""
        print(f"{'ok ' if holds else 'NOT'} {what}{'' if holds or not detail else f': {detail}'}", flush=True)
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        return bool(holds)

    def equal(self, what, found, expected):
        """One check that two values are equal; prints both when they are not."""
        self.outcome(what, found == expected, f"{found!r}, expected {expected!r}")

    def nothing(self, what, faults, shown=20):
        """One check that a list of faults is empty; prints the first of them."""
        self.outcome(what if not faults else f"{what}: {len(faults)} faults", not faults)
        for fault in faults[:shown]:
            print(f"      {fault}")
        if len(faults) > shown:
            print(f"      and {len(faults) - shown} more")

    def close(self):
        """Prints the closing line and exits: 1 when a check failed, or when none ran."""
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed or not self.passed else 0)
