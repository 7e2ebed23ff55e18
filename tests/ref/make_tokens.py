# SPDX-License-Identifier: Apache-2.0
#
# make_tokens.py: tests/ref/tokens, by the library `tokenizers` (0.23.3): small tokenizers of each known kind, trained on texts
# of this project, strings, and what the library makes of them, as dpgen tokens would write it.
#
#   python3 tests/ref/make_tokens.py tests/ref/tokens             the data again
#   python3 tests/ref/make_tokens.py DIR 100000 ./dpgen           so many strings a kind, made anew, against dpgen
import json
import random
import struct
import subprocess
import sys
import unicodedata
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers as P, trainers

BLANK, END = "\u2581", "<|end|>"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = CL100K.replace("{1,3}", "")
PAGES = [open(f, encoding="utf-8").read() for f in ("LICENSE", "examples/corpus/train.txt")]
PAGES.append("don't I'll WE'VE Straße naïve 東京都 12345 ½ ٣٤ привет мир שלום 🙂🙂 "
             "\n\n\t x\r\n\r\n  y   z")


def of_bytes(splitter, normalizer=None, whole=False):
    t = Tokenizer(models.BPE(ignore_merges=whole))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = splitter
    t.train_from_iterator(PAGES, trainers.BpeTrainer(vocab_size=560, initial_alphabet=P.ByteLevel.alphabet(),
                                                     special_tokens=[END, END + ">"], show_progress=False))
    return t


def of_characters(normalizer=None, splitter=None):
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    if normalizer:
        t.normalizer = normalizer
    if splitter:
        t.pre_tokenizer = splitter
    special = ["<unk>", END] + ["<0x%02X>" % i for i in range(256)]
    lines = [s for p in PAGES for s in p.replace("\n", " ").split(". ")]
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=720, special_tokens=special, max_token_length=9,
                                                     show_progress=False))
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(j))


def split_by(pattern):
    return P.Sequence([P.Split(Regex(pattern), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])


def kinds():
    blanks = normalizers.Replace(" ", BLANK)
    yield "gpt2", of_bytes(P.ByteLevel(add_prefix_space=False))
    yield "llama3", of_bytes(split_by(CL100K), whole=True)
    yield "qwen", of_bytes(split_by(QWEN), normalizers.NFC())
    prefix = of_bytes(P.ByteLevel(add_prefix_space=True))
    prefix.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<|user|>", rstrip=True, normalized=True),
                               AddedToken("<|us", normalized=True)])
    yield "prefix", prefix
    yield "digits", of_bytes(P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)]))
    yield "llama2", of_characters(normalizers.Sequence([normalizers.Prepend(BLANK), blanks]))
    yield "gemma", of_characters(blanks, P.Split(" ", "merged_with_previous"))
    yield "mistral", of_characters(splitter=P.Metaspace(replacement=BLANK, prepend_scheme="first", split=False))


POOLS = [" \t\n\r  '", "abcdeXYZ'stmdllvre", "0123456789", "!?.,;:-_/()[]{}<>|@#$%",
         "éüßñçøÀŞ", "привет東京都テストไทยالعربية", "½²٣४Ⅷ①",
         "🙂🎉👩\u200d💻", "\u00a0\u2003\u3000\u0085\u200b\ufeff\u00ad\u017f\x07\x1c\x1f"]


def string(r, words):
    s = ""
    for _ in range(r.randint(1, 6)):
        x = r.random()
        if x < .35:
            s += r.choice(["", " ", "  ", "\n"]) + r.choice(words)
        elif x < .42:
            s += r.choice([" ", "  ", "\n", "\r\n", "'s", "'LL", "n't", " I'Ve"])
        elif x < .44:
            s += r.choice(["", " ", " \n", "\u3000"])
            s += r.choice(["<mask>", "<|user|>", "<|us", "e\u0301o\u0323\u0302", "\u1100\u1161\u11a8"])
        elif x < .47:
            s += chr(r.choice([r.randrange(0x80, 0xd800), r.randrange(0xe000, 0x20000)]))
        else:
            s += "".join(r.choice(r.choice(POOLS)) for _ in range(r.randint(1, 5)))
    return s.replace(END, "")


def known(s):           # Python's Unicode may be older than the library's
    return all(unicodedata.category(c) != "Cn" for c in s)


def main(folder, count=160, dpgen=None):
    r, words = random.Random(5), PAGES[0].split()
    for name, t in kinds():
        strings = [string(r, words) for _ in range(count)] + [">x"]
        text = END.join(s for s in strings if name != "qwen" or known(s))
        ids = t.encode(text, add_special_tokens=False).ids
        data = struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253) + struct.pack("<%dH" % len(ids), *ids)
        base = "%s/%s" % (folder, name)
        t.save(base + ".json", pretty=False)
        open(base + ".txt", "wb").write(text.encode())
        open(base + ".bin", "wb").write(data)
        if dpgen:
            subprocess.run([dpgen, "tokens", "--tokenizer", base + ".json", base + ".txt", "-o", base + ".dpgen"], check=True)
            same = open(base + ".dpgen", "rb").read() == data
            print("%s: %d strings, %d tokens: %s" % (name, text.count(END) + 1, len(ids), "the same" if same else "DIFFERENT"))


main(sys.argv[1], *[int(a) for a in sys.argv[2:3]], *sys.argv[3:4])
