// node random_texts.mjs TOKENIZER_JSON COUNT SEED: makes random texts of what tokenizers stumble
// over, and prints a JSON array of {text, ids, decoded} as the library gives them.
import library from "tokenizers";

const [file, count, seed] = process.argv.slice(2);

// A linear congruential generator (Knuth's MMIX): the same texts everywhere.
const step = (x) => (x * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n);
let state = step(BigInt(seed));
const below = (n) => {
  state = step(state);
  return Number((state >> 33n) % BigInt(n));
};
const one = (list) => list[below(list.length)];

const spaces = [" ", "  ", "\t", "\n", "\r", "\r\n", "\n\n", "\u00a0", "\u2028", "\u2029", "\u3000",
  "\u200b", "\u180e", "\u205f", "\u1680", "\u0085", "\u000b", "\u000c", "\u001c", "\u001f", "\ufeff"];
const contractions = ["'s", "'S", "'ll", "'LL", "'Ve", "'re", "'D", "'m", "'t", "\u2019s", "'\u017f",
  "'\u017ft", "'\u212a", "'lL", "'", "''", "'a", "`s"];
const named = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<s>", "</s>",
  "<unk>", "<|", "|>", "<think>", "<|endoftext", "<0x0A>", "<0xE4>", "\u2581", "\u2581\u2581a",
  "\u0120", "\u010a"];
const marks = ["\u0301", "\u0308", "\u0323", "\u094d", "\u0327", "\u20d0", "\ufe0f", "\u200d",
  "\u0e33", "\u1161", "\u11a8", "\u0345", "\u093c", "\u09be", "\u0b3e", "\u1dfa", "\u3099",
  "\u{11930}", "\u{113c9}"];
const letters = ["e", "E", "a", "o", "s", "\u00e7", "\u1ea3", "\u212b", "\u2126", "K", "\ud55c",
  "\u1112", "\u1161", "\u11ab", "\uac00", "\u304b", "\u6771", "\u0915", "\u0921", "\u0b3f", "\ufb01",
  "\u00df", "\u0130", "\u0131", "\u01c4", "\uff8a", "\u00bd", "\u00b2", "\u2460", "\u2167", "\u0663",
  "\u096a", "\u{1d7d8}", "\u{1d49c}", "\u{20000}", "\u{1f642}", "\u{1f469}\u200d\u{1f467}",
  "\u{1f1e9}\u{1f1ea}", "\ue000", "\u{10ffff}", "\u{e0001}", "\u0378", "\uff07", "_", "\u2014",
  "\u201c", "\u20ac", "\u2116", "\u00aa", "\u30fc", "\u0640", "\u05d0", "\u0627", "\u0000", "\u0001",
  "\u007f", "\u0080", "\u00ad", "\u{13d94}", "\u{11935}", "\u{11382}", "\u{1ccf3}"];
const words = ["hello", "World", "the", "THE", "don", "I", "internationalization", "aaaaaaaa",
  "foo_bar", "http://", "x86", "C++", "1234567", "12", "3.14", "0x1F", "00", "don't", "I'LL",
  "=====", "----", "!!!", "?!", "();", "{\n\t}", "    return", " the", " a", "\n\n\n"];
const blocks = [[0x20, 0x7e], [0xa0, 0x24f], [0x250, 0x3ff], [0x400, 0x52f], [0x590, 0x6ff],
  [0x900, 0xdff], [0xe00, 0xfff], [0x1100, 0x11ff], [0x1e00, 0x1fff], [0x2000, 0x22ff],
  [0x2300, 0x2fff], [0x3000, 0x33ff], [0x3400, 0x9fff], [0xa000, 0xabff], [0xac00, 0xd7ff],
  [0xe000, 0xffff], [0x10000, 0x1ffff], [0x20000, 0x2ffff], [0x30000, 0x10ffff]];
const any = () => {
  const [first, last] = one(blocks);
  return String.fromCodePoint(first + below(last - first + 1));
};
const pieces = [() => one(spaces), () => one(spaces), () => one(contractions),
  () => one(letters) + one(marks), () => one(marks), () => one(letters), () => one(words),
  () => one(words), any, () => any() + any(), () => String(below(100000)), () => one(named),
  () => one(words).slice(0, 1 + below(3)), () => String.fromCharCode(33 + below(94))];

const text = () => {
  let out = "";
  for (let left = 1 + below(below(10) === 0 ? 40 : 8); left > 0; --left) {
    const piece = one(pieces)();
    out += below(14) === 0 ? piece + piece : piece;
  }
  return out;
};

const tokenizer = library.Tokenizer.fromFile(file);
const results = [];
for (let i = 0; i < Number(count); ++i) {
  const random = text();
  const encoding = await tokenizer.encode(random, null, { addSpecialTokens: false });
  const ids = Array.from(encoding.getIds());
  results.push({ text: random, ids, decoded: await tokenizer.decode(ids, false) });
}
console.log(JSON.stringify(results));
