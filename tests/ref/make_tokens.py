# SPDX-License-Identifier: Apache-2.0
#
# make_tokens.py: tests/ref/tokens, by the library `tokenizers` (0.23.3): small tokenizers of each known kind, trained on texts
# of this project, strings, and what the library makes of them, as dpgen tokens would write it.
#
#   python3 tests/ref/make_tokens.py tests/ref/tokens             the data again
#   python3 tests/ref/make_tokens.py DIR 100000 ./dpgen           so many strings a kind, made anew, against dpgen
import json
import random
import re
import struct
import subprocess
import sys
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


def of_pieces(lower):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = P.BertPreTokenizer()
    t.train_from_iterator(PAGES, trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]", "[MASK]", END, END + ">"],
                                                           show_progress=False))
    return t


def of_probabilities(normalizer, splitter, fallback=False, kept=None):
    """Unigram; with `kept`, characters but these are unknown"""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizer
    t.pre_tokenizer = splitter
    t.train_from_iterator([kept.sub(" ", p) if kept else p for p in PAGES],
                          trainers.UnigramTrainer(vocab_size=420, special_tokens=["<unk>", END, END + ">"], unk_token="<unk>",
                                                  show_progress=False))
    j = json.loads(t.to_str())
    j["model"]["vocab"] += [["☃", 5.0], ["☃☂", -30.0]]      # likelier than the first and an unknown one, by 5
    if fallback:
        j["model"]["byte_fallback"] = True
        j["model"]["vocab"] += [["<0x%02X>" % i, -20.0 - i / 30] for i in range(256)]
        j["added_tokens"] = [a for a in j["added_tokens"] if a["content"] != "<unk>"]
    return Tokenizer.from_str(json.dumps(j))


def double_array(table):
    """What SentencePiece writes of a table of replacements: Darts' units, and the texts they stand for"""
    tree, texts = {}, b""
    for key, value in table.items():
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = len(texts)
        texts += value.encode() + b"\0"
    units, taken = {0: 0}, set()

    def place(node, at):
        keys = sorted(b for b in node if b is not None)
        base = next(x for x in range(1, 1 << 16) if x not in taken and
                    not any(x ^ b in units for b in keys + ([0] if None in node else [])))
        taken.add(base)
        units[at] |= (at ^ base) << 10
        if None in node:
            units[at] |= 1 << 8
            units[base] = 1 << 31 | node[None]
        for b in keys:
            units[base ^ b] = b
        for b in keys:
            place(node[b], base ^ b)
    place(tree, 0)
    array = [units.get(i, 1 << 31 | 0xff) for i in range((max(units) | 255) + 1)]
    return struct.pack("<I%dI" % len(array), 4 * len(array), *array) + texts


# Shapes of replacements: one to one, to many, to none, of sequences; a base that has one drops the marks of its cluster
CHARS = {"\u00a0": " ", "\t": " ", "\n": " ", "\r": "", "\u200b": "", "\u00ad": "", "\u0001": "",
         "ﬁ": "fi", "½": "1\u20442", "①": "1",
         "é": "é", "e\u0301": "é", "o\u0323\u0302": "ộ", "\u3000": " ",
         "Ａ": "A", "ß": "ss", "\u0600": "x", "ÀÀ": "?", "a\u0308": "ä",
         "\r\n": " ",
         "テ": "ﾃ", "Ⅷ": "VIII"}


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
    for name in ("bert", "cased"):
        pieces = of_pieces(name == "bert")
        pieces.add_tokens([AddedToken("ÉTÉ", normalized=True)])
        yield name, pieces
    runs, strip = Regex(" {2,}"), normalizers.Strip(left=False, right=True)
    words = P.Sequence([P.WhitespaceSplit(), P.Metaspace(replacement=BLANK, prepend_scheme="always")])
    chars = normalizers.Precompiled(double_array(CHARS))
    some = re.compile("[^ -~\\n]")
    yield "t5", of_probabilities(normalizers.Sequence([chars, strip, normalizers.Replace(runs, BLANK)]),
                                 P.Metaspace(replacement=BLANK, prepend_scheme="first"), kept=some)
    yield "xlmr", of_probabilities(chars, words, fallback=True)
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    yield "albert", of_probabilities(normalizers.Sequence(quotes + [
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), chars, normalizers.Replace(runs, " ")]), words,
        kept=some)
    small = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    yield "whole", of_probabilities(small, P.Metaspace(replacement=BLANK, prepend_scheme="always", split=False))


POOLS = [" \t\n\r  '", "abcdeXYZ'stmdllvre", "0123456789", "!?.,;:-_/()[]{}<>|@#$%",
         "éüßñçøÀŞ", "привет東京都テストไทยالعربية", "½²٣४Ⅷ①",
         "🙂🎉👩\u200d💻", "\u00a0\u2003\u3000\u0085\u200b\ufeff\u00ad\u017f\x07\x1c\x1f"]


MORE = ["``", "''", "ÉTÉ", "e\u0301t\u00e9", "ﬁ\u0301", "¨", "\u0600e\u0301", "İSTANBUL",
        "<unk>", "[MASK]", "[UNK]",
        "ÀÀ\r\n", "☃☂", "extraordinarilylonglongword", "the\u093esis"]


def string(r, words, more=[]):
    s = ""
    for _ in range(r.randint(1, 6)):
        x = r.random()
        if x < .35:
            s += r.choice(["", " ", "  ", "\n"]) + r.choice(words)
        elif x < .42:
            s += r.choice([" ", "  ", "\n", "\r\n", "'s", "'LL", "n't", " I'Ve"])
        elif x < .44:
            s += r.choice(["", " ", " \n", "\u3000"])
            s += r.choice(more + ["<mask>", "<|user|>", "<|us", "e\u0301o\u0323\u0302", "\u1100\u1161\u11a8"])
        elif x < .47:
            s += chr(r.choice([r.randrange(0x80, 0xd800), r.randrange(0xe000, 0x20000)]))
        else:
            s += "".join(r.choice(r.choice(POOLS)) for _ in range(r.randint(1, 5)))
    return s.replace(END, "")


LATER = ("bert", "cased", "t5", "xlmr", "albert", "whole")


def main(folder, count=160, dpgen=None):
    r, words = random.Random(5), PAGES[0].split()
    for name, t in kinds():
        more = MORE if name in LATER else []
        strings = [string(r, words, more) for _ in range(count)] + [">x"] + more
        text = END.join(strings)
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
