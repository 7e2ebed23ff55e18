/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: conversations to tokens, targets and document numbers.
 */
#ifndef CHAT_H
#define CHAT_H
#include "rt/tokens/tokens.h"

/* files: lines of JSON; length: positions of a sample; dir: the folder to write */
int chat_command(const Tokenizer *t, const char *template, const Strs *files, int length, const char *dir);
#endif
