/* SPDX-License-Identifier: Apache-2.0
 *
 * json.c: text as a JSON string (RFC 8259, section 7).
 *
 * Bytes above 0x7f pass as they are: load() accepts nothing but valid UTF-8.  '<' is escaped although JSON does not
 * ask for it, so that the same string may stand inside a <script> of the report without ending it.
 */
#include "base.h"
#include <string.h>

void json_text(FILE *f, const char *text)
{
    static const char special[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";
    fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        const char *at = strchr(special, c);
        if (at)
            fprintf(f, "\\%c", escape[at - special]);
        else if (c < 0x20 || c == 0x7f || c == '<')
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}
