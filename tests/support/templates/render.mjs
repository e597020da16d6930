// node render.mjs CASES: renders each of a JSON array of {"template", "variables"} with npm's
// @huggingface/jinja and prints an array of {"output"} or {"error"}.
import { readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";

const now = 1700000000 * 1000; // what strftime_now tells; run with TZ=UTC
const SystemDate = Date;
globalThis.Date = class extends SystemDate {
  constructor(...given) {
    if (given.length > 0) super(...given);
    else super(now);
  }
};

const parsed = new Map();
const rendered = ({ template, variables }) => {
  try {
    if (!parsed.has(template)) parsed.set(template, new Template(template));
    return { output: parsed.get(template).render(variables) };
  } catch (error) {
    return { error: String(error.message) };
  }
};
console.log(JSON.stringify(JSON.parse(readFileSync(process.argv[2], "utf8")).map(rendered)));
