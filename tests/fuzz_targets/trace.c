/* SPDX-License-Identifier: Apache-2.0
 *
 * trace: the trace of a run, put into the page of its plan, which is called by 64 letters a.
 */
#include "target.h"
#include "view/view.h"

#define A8 "aaaaaaaa"
#define PLAN A8 A8 A8 A8 A8 A8 A8 A8
extern const char report_mark[];
const char report_mark[] = "<!-- measured -->";     /* of the page; the rest of report.c is not needed */

static void take(const uint8_t *data, size_t n)
{
    const char *folder = target_folder();
    FILE *f = fopen(strf("%s/report.html", folder), "w");
    if (!f)
        abort();
    fprintf(f, "<meta name=\"plan\" content=\"%s\">\n%s\n", PLAN, report_mark);
    fclose(f);
    report_measured(folder, target_file(data, n), strf("%s/fuzzed.html", folder));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
