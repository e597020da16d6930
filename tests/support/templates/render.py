"""render.py CASES: renders each of a JSON array of {"template", "variables"} with Debian's jinja2, set
up as chat templates need it, and prints an array of {"output"} or {"error"}."""
import datetime
import json
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1700000000  # what strftime_now tells, in UTC


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(pattern):
        return datetime.datetime.utcfromtimestamp(NOW).strftime(pattern)

    made.filters["tojson"] = tojson
    made.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return made


def rendered(made, parsed, case):
    try:
        text = case["template"]
        if text not in parsed:
            parsed[text] = made.from_string(text)
        output = parsed[text].render(**case["variables"])
        output.encode()
        return {"output": output}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


made, parsed = environment(), {}
with open(sys.argv[1], encoding="utf-8") as file:
    cases = json.load(file)
print(json.dumps([rendered(made, parsed, case) for case in cases]))
