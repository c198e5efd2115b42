"""The client that openapi-python-client (PyPI) generates."""
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import sys
import typing

from api_document import walk_schemas
from generated_code import Answer, arguments_of, shape

KNOWN_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


class OpenApiPythonClient:
    name = "openapi-python-client"
    package = "chancery_openapi_python_client"

    @staticmethod
    def left_out(_options):
        return None

    @classmethod
    def command(cls, document_file, folder, _options):
        configuration = os.path.join(folder, "openapi-python-client.json")
        with open(document_file, encoding="utf-8") as file:
            opaque = sorted(opaque_media_types(json.load(file)))
        with open(configuration, "w", encoding="utf-8") as file:
            json.dump({"content_type_overrides": {one: "application/octet-stream" for one in opaque}, "post_hooks": []}, file)
        program = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none"]
        paths = ["--path", document_file, "--output-path", os.path.join(folder, cls.package), "--overwrite"]
        return [*program, "--config", configuration, *paths]

    def __init__(self, base_url):
        self.base_url, self.token = base_url, None
        self.modules = dict(self.endpoints())

    @classmethod
    def endpoints(cls):
        """Each generated module of an operation holds its method and its path as text; it is imported when called."""
        api = importlib.import_module(f"{cls.package}.api")
        for found in pkgutil.walk_packages(api.__path__, f"{api.__name__}."):
            with open(importlib.util.find_spec(found.name).origin, encoding="utf-8") as file:
                source = file.read()
            method, url = re.search(r'"method": "(\w+)"', source), re.search(r'"url": "([^"]*)"', source)
            if method and url:
                yield shape(method.group(1), url.group(1)), found.name

    @classmethod
    def upstream_fault(cls, module, error, operations):
        """Why a module that cannot be imported says nothing about the document; None when it does.

        The generator does not import `Unset` for a required body of several media types (its issue 1451).
        """
        if not isinstance(error, NameError) or error.name != "Unset":
            return None
        several = {shape(one.method, one.path): one for one in operations if len(body_media_types(one)) > 1}
        here = [several[key] for key, name in cls.endpoints() if name == module and key in several]
        return f"{here[0].name} takes {' and '.join(body_media_types(here[0]))}: issue 1451 of the generator" if here else None

    def has(self, method, path):
        return shape(method, path) in self.modules

    def client(self):
        module = importlib.import_module(f"{self.package}.client")
        if self.token is None:
            return module.Client(base_url=self.base_url, timeout=30)
        return module.AuthenticatedClient(base_url=self.base_url, token=self.token, timeout=30)

    def call(self, method, path, parameters=None, body=None):
        function = importlib.import_module(self.modules[shape(method, path)]).sync_detailed
        arguments = arguments_of(function, parameters or {})
        if body is not None:
            arguments["body"] = body_class(function).from_dict(body)
        answer = function(client=self.client(), **arguments)
        return Answer(int(answer.status_code), answer.content, answer.parsed)


def body_media_types(operation):
    return list(operation.value.get("requestBody", {}).get("content", {}))


def opaque_media_types(document):
    """Media types that the generator does not know, such as lines of JSON: its client handles them as bytes."""
    for _, value in walk_schemas(document):
        for media_type in value.get("content", {}):
            base = media_type.partition(";")[0].strip()
            if base not in KNOWN_MEDIA_TYPES and not base.endswith("+json"):
                yield media_type


def body_class(function):
    """The first model that the parameter `body` may be."""
    hint = typing.get_type_hints(function)["body"]
    return next(one for one in (typing.get_args(hint) or (hint,)) if hasattr(one, "from_dict"))
