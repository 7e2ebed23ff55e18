/* SPDX-License-Identifier: Apache-2.0
 *
 * proof.c: no folder has its name before dpgen-verify has proved it, and each carries the source of dpgen-verify.
 *
 * dpgen-verify (verify/, docs/verify.md) is another program, which shares no source with this one.  It is linked in and called
 * in a process of its own, so that neither sees the memory of the other: it reads the files from the disk, as it does for a
 * user.  CompCert (Leroy 2009) and translation validation (Pnueli, Siegel, Singerman 1998) judge each run of a compiler so;
 * verifiers of parallel plans (TrainVerify 2025) run apart from it, for hours, and a user may forget them.
 *
 *   needs   all files of a folder but MANIFEST, so that a run that is killed meanwhile leaves nothing that looks whole
 *   fails   status 70 and no folder where there is no proof; --no-verify is the way past it, and the folder says so
 *   not     stages of several devices: sums over them want an algebra of parts, or a reference with a lane for each
 */
#include "emit.h"
#include "base/process.h"
#include <string.h>

enum { NO_MEMORY = 6, KILLED = 128 + 9 };

int verify_main(int argc, char **argv);         /* verify/verify.c: the whole of what is shared */

static void print_line(void *ctx, char *line)
{
    (void)ctx;
    fprintf(stderr, "%s\n", quote_terminal(line));
}

void emit_proof(const Out *o)
{
    char *argv[] = {"dpgen-verify", "--edited", (char *)(uintptr_t)out_place(o), NULL};
    int status = process_call(verify_main, 3, argv, print_line, NULL);
    if (status == NO_MEMORY || status == KILLED)
        fail(EXIT_RUN, "no memory to prove the folder; nothing was written; --no-verify writes it without a proof");
    if (status)
        die("dpgen-verify does not prove the folder (status %d); --no-verify writes it without a proof", status);
}

const char *emit_unproved(const Plan *p, bool prove)
{
    if (prove && p->g->team)
        warn(p->m->plan.tensor_at, "dpgen-verify does not prove stages of several devices yet: the folder has a file UNPROVED");
    return !prove ? "was written with --no-verify"
         : p->g->team ? "has stages of several devices, which dpgen-verify does not know" : NULL;
}

void emit_prover(Out *o, const char *unproved)
{
    for (const Embedded *e = embedded; e->name; e++)
        if (!strncmp(e->name, "verify/", 7))
            out_copy(o, e->name, e->data, e->n);
    if (!unproved)
        return;
    fprintf(out_open(o, "UNPROVED"), EMIT_TAG "\nThis folder %s: dpgen has not proved that its "
            "stages compute what one device would.\nmake proof tries to.\n", unproved);
    out_close(o);
}
