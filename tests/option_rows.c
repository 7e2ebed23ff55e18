/* SPDX-License-Identifier: Apache-2.0
 *
 * option_rows.c: the options of a command, from the table in its source: `NAME KIND`, one a line.  SOURCE is a string, TABLE
 * its table; the archive of its side is linked; -DJOB for that of a job.
 */
#include SOURCE
#include <stdio.h>

int main(void)
{
#ifdef JOB
    static const char *const kinds[] = {"flag", "text", "number", "number", "number", "input", "input", "output", "folder",
                                        "checkpoints", "published", "by_stage"};
    const JobOption *row = TABLE;
#else
    static const char *const kinds[] = {"text", "input", "input", "output", "rewritten", "folder", "flag", "elsewhere"};
    const Option *row = TABLE;
#endif
    for (; row->name; row++)
        printf("%s %s\n", row->name, kinds[row->kind]);
    return 0;
}
