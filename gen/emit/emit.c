/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.c: the folder of docs/emitted.md and README.md, from a finished plan.
 */
#include "emit.h"

/* needs: a plan that every pass has filled.  fills: dir, whole or not at all.  The SHA-256 of its MANIFEST. */
bool emit_program(const char *prefix)
{
    return !strcmp(prefix, "train") || !strcmp(prefix, "serve");
}

const char *emit(const Plan *p, const char *dir, const EmitAs *as, const Text *reference)
{
    Out *o = out_begin(dir);
    /* plan.json's own hash is part of launch.c, so that a log can name the plan it ran. */
    Text t, launch;
    emit_plan_json(text_open(&t), p);
    text_close(&t);
    const char *hash = sha256_of(t.at, t.n);
    out_copy(o, "plan.json", t.at, t.n);
    emit_launch(text_open(&launch), p, as->prefix, hash, as->library);
    text_close(&launch);
    out_copy(o, "launch.c", launch.at, launch.n);
    Api *api = as->library ? api_new(p, as->prefix, launch.at) : NULL;
    Strs taken = api ? api_taken(api) : (Strs){0};
    const EmitDims *dims = dims_of(p);
    for (int d = 0; d < p->devices; d++)
        emit_stage(o, p, dims, d, &taken);
    if (!emit_program(as->prefix) && !api) {
        emit_header(out_open(o, strf("%s.h", as->prefix)), p, as->prefix);
        out_close(o);
    }
    /* Behind its first line, which says what it is, comments. */
    size_t first = strcspn(reference->at, "\n") + 1;
    fprintf(out_open(o, "model.graph"), "%.*s# SPDX-License-Identifier: " EMIT_LICENCE "\n"
            "# The step on one device, call by call, before any two are joined: what the stages together must compute.\n"
            "# This file is the output of a program: it belongs to whoever made it, without conditions.\n%s", (int)first,
            reference->at, reference->at + first);
    out_close(o);
    emit_trace(out_open(o, "trace.json"), p);
    out_close(o);
    emit_report(out_open(o, "report.html"), p, hash);
    out_close(o);
    if (api)
        api_emit(o, api);
    else
        emit_build(o, p, as->prefix);
    out_copy(o, "LICENSE", embedded_find("LICENSE")->data, embedded_find("LICENSE")->n);
    const char *path = p->m->path;
    const char *name = "model.yaml";
    size_t n;
    const char *data = file_read(path, "it was there before", &n);
    out_copy(o, name, data, n);
    if (p->c->profile) {
        profile_print(out_open(o, "profile"), p->c->profile);
        out_close(o);
    }
    emit_prover(o, as->prove);
    emit_sbom(o, p, as->library ? as->prefix : NULL);
    if (as->prove)
        emit_proof(o);
    return out_end(o);
}
