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
 */
#include "emit.h"

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

void emit_prover(Out *o, bool proved)
{
    for (const Embedded *e = embedded; e->name; e++)
        if (!strncmp(e->name, "verify/", 7))
            out_copy(o, e->name, e->data, e->n);
    if (proved)
        return;
    fprintf(out_open(o, "UNPROVED"), EMIT_TAG "\nThis folder was written with --no-verify: dpgen has not proved that its "
            "stages compute what one device would.\nmake proof tries to.\n");
    out_close(o);
}
