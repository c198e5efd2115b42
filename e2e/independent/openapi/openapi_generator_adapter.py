"""The client that openapi-generator (Maven artefact openapi-generator-cli) generates for Python."""
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import typing

from generated_code import Answer, arguments_of, loose, shape


class OpenApiGeneratorClient:
    name = "openapi-generator"
    package = "chancery_openapi_generator"

    @staticmethod
    def left_out(options):
        """Why this generator cannot run here; None when it can."""
        if shutil.which("java") is None:
            return "no Java"
        if not options.openapi_generator:
            return "openapi-generator-cli was not given"
        if not os.path.exists(options.openapi_generator):
            return f"no file {options.openapi_generator}"
        return None

    @classmethod
    def command(cls, document_file, folder, options):
        generated = ["-g", "python", "-i", document_file, "-o", folder, "--package-name", cls.package]
        quiet = ["--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"]
        return ["java", "-jar", options.openapi_generator, "generate", *generated, *quiet]

    @staticmethod
    def upstream_fault(_module, _error, _operations):
        return None

    def __init__(self, base_url):
        self.base_url, self.token = base_url, None
        self.functions = dict(self.endpoints())

    def endpoints(self):
        """Each operation has a private function that holds its method and its path as text."""
        api = importlib.import_module(f"{self.package}.api")
        for found in pkgutil.walk_packages(api.__path__, f"{api.__name__}."):
            for _, owner in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
                for name, function in inspect.getmembers(owner, inspect.isfunction):
                    if owner.__module__ == found.name and name.endswith("_serialize"):
                        source = inspect.getsource(function)
                        method = re.search(r"method='(\w+)'", source).group(1)
                        path = re.search(r"resource_path='([^']*)'", source).group(1)
                        yield shape(method, path), (owner, f"{name[1:-len('_serialize')]}_with_http_info")

    def has(self, method, path):
        return shape(method, path) in self.functions

    def client(self):
        package = importlib.import_module(self.package)
        configuration = package.Configuration(host=self.base_url, access_token=self.token)
        return package.ApiClient(configuration)

    def call(self, method, path, parameters=None, body=None):
        owner, name = self.functions[shape(method, path)]
        function = getattr(owner(self.client()), name)
        arguments = arguments_of(function, parameters or {})
        if body is not None:
            parameter, model = body_parameter(function, path)
            arguments[parameter] = model.from_dict(body)
        refusal = importlib.import_module(f"{self.package}.exceptions").ApiException
        try:
            answer = function(**arguments)
            return Answer(answer.status_code, bytes(answer.raw_data), answer.data)
        except refusal as error:
            return Answer(error.status, (error.body or "").encode(), error.data)


def body_parameter(function, path):
    """The parameter of a generated function that takes a model, and is no parameter of the path."""
    in_path = {loose(name) for name in re.findall(r"\{([^}]*)\}", path)}
    for name, hint in typing.get_type_hints(inspect.unwrap(function)).items():
        models = [one for one in (hint, *typing.get_args(hint)) if hasattr(one, "from_dict")]
        if models and name != "return" and loose(name) not in in_path:
            return name, models[0]
    raise LookupError(f"{function.__qualname__} takes no body")
