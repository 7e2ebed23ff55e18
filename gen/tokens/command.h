/* SPDX-License-Identifier: Apache-2.0
 *
 * command.h: texts to tokens: dpgen tokens.  The tokenizer itself is in rt/tokens, for jobs write texts with it.
 */
#ifndef COMMAND_H
#define COMMAND_H
int tokens_command(int argc, char **argv);
#endif
