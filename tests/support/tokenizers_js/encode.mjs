// node encode.mjs FOLDER TEXTS: prints the ids that FOLDER's tokenizer gives to each of a JSON array
// of texts, as a JSON array of arrays.
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";

const [folder, texts] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const tokenizer = new Tokenizer(read(`${folder}/tokenizer.json`), read(`${folder}/tokenizer_config.json`));
const encode = (text) => Array.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
console.log(JSON.stringify(read(texts).map(encode)));
