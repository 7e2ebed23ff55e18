/* SPDX-License-Identifier: Apache-2.0
 *
 * quote.h: text of a file or of the command line, made harmless for where it is printed.  Each gives a new text.
 */
#ifndef QUOTE_H
#define QUOTE_H
#include "base.h"

const char *quote_c(const char *text);          /* a C string literal with its quotes; NULL: 0 */
const char *quote_comment(const char *text);    /* inside a comment of C or make, or a line of a README */
const char *quote_html(const char *text);       /* inside an element, or an attribute in double quotes */
const char *quote_shell(const char *text);      /* one word of a command that a person may copy */
const char *quote_recipe(const char *text);     /* one word of a recipe of make */
const char *quote_terminal(const char *text);   /* a line on a terminal */
#endif
