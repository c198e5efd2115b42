"""Finds the function of an operation in generated code by method and path, whatever the generator called it."""
import inspect
import json
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """An answer as a generated client gives it. `typed`: the value that the client parsed, None for nothing."""

    status: int
    body: bytes
    typed: object

    def json(self):
        return json.loads(self.body)


def shape(method, path):
    """Names one operation whatever its parameters are called: generators rename them."""
    return method.lower(), re.sub(r"\{[^}]*\}", "{}", path)


def loose(name):
    """A name without the parts that generators change: case, underscores, dashes."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def arguments_of(function, values):
    """Maps parameters as the document names them to those of a generated function; refuses unknown ones."""
    known = {loose(name): name for name in inspect.signature(function).parameters}
    missing = [name for name in values if loose(name) not in known]
    if missing:
        raise LookupError(f"{function.__qualname__} has no parameter {', '.join(missing)}")
    return {known[loose(name)]: value for name, value in values.items()}
