// node prompts.mjs FOLDER CONVERSATIONS: what a reader of FOLDER gives its model for each of a JSON
// array of conversations: {"text", "ids"}, made by npm's @huggingface/jinja and
// @huggingface/tokenizers alone. Prints a JSON array.
import { existsSync, readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";
import { Tokenizer } from "@huggingface/tokenizers";

const [folder, conversations] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const settings = read(`${folder}/tokenizer_config.json`);
const tokenizer = new Tokenizer(read(`${folder}/tokenizer.json`), settings);
const file = `${folder}/chat_template.jinja`;
const template = new Template(existsSync(file) ? readFileSync(file, "utf8") : settings.chat_template);
const text_of = (token) => (token === null || typeof token !== "object" ? token : token.content);

console.log(JSON.stringify(read(conversations).map((messages) => {
  const text = template.render({
    messages,
    add_generation_prompt: true,
    bos_token: text_of(settings.bos_token) ?? "",
    eos_token: text_of(settings.eos_token) ?? "",
  });
  return { text, ids: Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids) };
})));
