#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes the table of docs/import.md: for each architecture of the installed transformers with a causal, masked or
# sequence-to-sequence language head, what dpgen import says of its configuration.  "right": tests/hf has a tiny one, whose loss
# and gradients tests/families.sh compares.  Others are asked with the values that transformers gives.
#
#     pip install torch transformers==5.24.0; python3 tests/ref/make_table.py ./dpgen tests/hf docs/import.md
import json, os, re, subprocess, sys, tempfile
import transformers as hf
import yaml
from transformers.models.auto import modeling_auto as auto


def right(folder):
    found = set()
    for family in os.listdir(folder):
        path = os.path.join(folder, family)
        if os.path.isfile(path):
            config = json.loads(open(path).readline().removeprefix('config '))
            found |= {(config['model_type'], name) for name in config['architectures']}
    return found


def verdict(dpgen, kind, name):
    try:
        config = hf.CONFIG_MAPPING[kind]()
        config.architectures = [name]
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            said = subprocess.run([dpgen, 'import', folder, '-o', folder + '/model.yaml'], capture_output=True, text=True)
    except Exception as e:
        return kind, 'a configuration of its own'
    first = said.stderr.split('\n')[0]
    if said.returncode == 0:
        return config.model_type, 'imported, not compared'
    text = re.sub(r'^.*?: error: ', '', first)
    for pattern, short in (("model type '.*' is not known", 'a template alone'),
                           (r"dpgen does not do model type '.*' yet: it lacks (.*)", r'\1'),
                           (r"architectures: '(.*)' lacks .*", 'a head of this class'),
                           (r"'(.*)' is not known of model type.*", r'field `\1`'),
                           (r'(\S+): dpgen does not do (.*) for model type.*', r'field `\1`: \2')):
        text = re.sub('^' + pattern + '$', short, text)
    return config.model_type, text


def known():
    table = yaml.load(''.join(open(f'gen/huggingface/{x}.yaml').read() for x in ('parts', 'families')), yaml.CBaseLoader)
    groups = {}

    def value(row, name):
        like = row.get('like', [])
        found = [row.get(name)] + [value(table['parts'].get(part) if table['parts'].get(part, row) is not row
                                         else table['families'][part], name)
                                   for part in ([like] if isinstance(like, str) else like)]
        return next((x for x in found if x), None)

    for kind, row in table['families'].items():
        template = value(row, 'template').split()[0]
        template = 'llama.yaml' if template == 'gpt2.yaml' else template
        groups.setdefault((template, bool(value(row, 'moe'))), []).append(f'`{kind}`')
    return [f'| {", ".join(sorted(groups[key]))} | {text} |\n' for key, text in (
        (('llama.yaml', False), 'language models of equal layers'),
        (('llama.yaml', True), 'language models with experts, without the loss that spreads tokens'),
        (('bart.yaml', False), 'an encoder and a decoder, or the decoder alone, as `architectures` says'),
        (('t5.yaml', False), 'also with gated layers'),
        (('bert.yaml', False), 'a head of masked words, of the next word, of classes, or of a class for each position, as '
         '`architectures` says; `bert` also with both heads of its pre-training'),
        (('vit.yaml', False), 'images are [height, width, channels]'))]


def main(dpgen, folder, page):
    done, rows, right_ones = right(folder), {}, set()
    pairs = []
    for mapping in (auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
                    auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES):
        for kind, names in mapping.items():
            pairs += [(kind, name) for name in ([names] if isinstance(names, str) else names)]
    for kind, name in sorted(set(pairs)):
        if (kind, name) in done:
            right_ones.add(name)
            continue
        model_type, text = verdict(dpgen, kind, name)
        if (model_type, name) in done:
            right_ones.add(name)
        else:
            rows.setdefault(text, set()).add(name)
    table = [('right', right_ones)] + [('lacks ' + text, rows[text]) for text in sorted(rows)]
    lines = [f'| {text} | {len(names)} | {", ".join(sorted(names))} |\n' for text, names in table]
    head, _, tail = open(page).read().partition('| verdict | | classes |\n|---|---|---|\n')
    start, mark, rest = head.partition('| model types | from |\n|---|---|\n')
    head = start + mark + ''.join(known()) + rest[rest.index('\n\n') + 1:]
    with open(page, 'w') as f:
        f.write(head + _ + ''.join(lines) + tail[tail.index('\n\n') + 1:])
    print(sum(len(names) for _, names in table), 'architectures,', len(right_ones), 'right')


if __name__ == '__main__':
    main(*sys.argv[1:])
