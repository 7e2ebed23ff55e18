/* SPDX-License-Identifier: Apache-2.0
 *
 * words.h: what sample asks of a tokenizer.
 */
#ifndef WORDS_H
#define WORDS_H
#include "run.h"

struct TokenText {
    /* The tokenizer of a file, and the tokens of a text with it: as many as there are, and of those the first `room`. */
    int (*encode)(Run *run, const char *path, const char *text, int32_t *ids, long room, long *n);
    const char *(*word)(int id, int *n);        /* the bytes of a token inside a text; NULL: there is no such token */
};
#endif
