"""make_expected.py FOLDER: writes expected.json from constructs.txt and variables.json beside this
file. FOLDER is where package.json of this folder was installed."""
import json
import os
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
with open(f"{here}/constructs.txt", encoding="utf-8") as file:
    constructs = file.read()[:-1].split("\n=====\n")
with open(f"{here}/variables.json", encoding="utf-8") as file:
    variables = json.load(file)


def results(command, path):
    done = subprocess.run([*command, path], check=True, capture_output=True,
                          env={**os.environ, "TZ": "UTC"})
    return json.loads(done.stdout)


with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    json.dump([{"template": each, "variables": variables} for each in constructs], file)
    file.flush()
    reference = results([sys.executable, f"{here}/render.py"], file.name)
    other = results(["node", f"{sys.argv[1]}/render.mjs"], file.name)
lines = []
for template, one, two in zip(constructs, reference, other):
    entry = {"template": template, "jinja2": one}
    # What differs stands there by name; jinja2 is the reference.
    if two.get("output") != one.get("output") or ("error" in one) != ("error" in two):
        entry["huggingface"] = two
    lines.append(json.dumps(entry, ensure_ascii=False))
with open(f"{here}/expected.json", "w", encoding="utf-8") as file:
    file.write("[\n" + ",\n".join(lines) + "\n]\n")
print(len(lines), "constructs;", sum("huggingface" not in json.loads(line) for line in lines), "alike in both")
