#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes DIR/NAME.{tokens,targets,documents}.npy: the conversations of DIR/chats.jsonl under each template of DIR, by
# apply_chat_template of transformers.  Answers are what it says of templates that mark them, and otherwise found by the
# characters of their messages in the text.
#
#     pip install transformers==5.24.0 jinja2 numpy; python3 tests/ref/make_chat.py tests/ref/chat
import glob, json, os, sys, tempfile
import numpy as np
from transformers import PreTrainedTokenizerFast

LENGTH = 64


def answers(tokenizer, template, messages, text):
    """Characters of each answer."""
    for k, message in enumerate(messages):
        if message['role'] == 'assistant':
            write = lambda n, ask: tokenizer.apply_chat_template(messages[:n], chat_template=template, tokenize=False,
                                                                 add_generation_prompt=ask)
            before, after = write(k, True), write(k + 1, False)
            assert text.startswith(before) and text.startswith(after)
            yield len(before), len(after)


def main(folder):
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        f.write(open(os.path.join(folder, '../tokens/gpt2.json')).read().replace('<|end|>>', '<|start|>'))
        f.flush()
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=f.name, bos_token='<|start|>', eos_token='<|end|>')
    for path in sorted(glob.glob(folder + '/*.jinja')):
        template, rows, row, number = open(path).read(), [], [], 0
        for line in open(folder + '/chats.jsonl'):
            if not line.strip():
                continue
            messages = json.loads(line)['messages']
            text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
            if 'generation %}' in template:
                out = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=True,
                                                    return_assistant_tokens_mask=True)
                ids, mask = out['input_ids'], out['assistant_masks']
            else:
                out = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
                ids = tokenizer.apply_chat_template(messages, chat_template=template, return_dict=True)['input_ids']
                assert ids == out['input_ids']
                spans = list(answers(tokenizer, template, messages, text))
                mask = [int(any(a < end and start < b for a, b in spans)) for start, end in out['offset_mapping']]
            positions = [(ids[i], ids[i + 1] if mask[i + 1] else -100) for i in range(min(len(ids) - 1, LENGTH))]
            if all(target == -100 for _, target in positions):
                continue
            if len(row) + len(positions) > LENGTH:
                rows.append(row + [(0, -100, number)] * (LENGTH - len(row)))
                row, number = [], 0
            row += [(*p, number) for p in positions]
            number += 1
        rows.append(row + [(0, -100, number)] * (LENGTH - len(row)))
        for i, what in enumerate(('tokens', 'targets', 'documents')):
            np.save(path.removesuffix('.jinja') + f'.{what}.npy', np.array(rows, dtype='<i4')[:, :, i])


if __name__ == '__main__':
    main(sys.argv[1])
