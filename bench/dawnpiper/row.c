/* SPDX-License-Identifier: Apache-2.0
 *
 * row.c: one row of the table: the largest micro-batch of one planner, and what it costs.
 *
 *   row HINT MODEL.yaml DEVICES.yaml STAGES MICRO PLANNER [PATH=VALUE ...]
 *   row =B   MODEL.yaml DEVICES.yaml STAGES MICRO PLANNER [PATH=VALUE ...]
 *
 * prints b*, samples/s there, the largest that fits at any price, samples/s there, the best micro-batch, its samples/s, and how
 * many sizes were planned.  Each size is planned whole, by gen/search/search.c, in a process of its own: passes do
 * not free.  The step has MICRO micro-batches; costs are estimates from the device file.  A size counts as fitting when the
 * packed arena of every device is within its limit.  HINT: a size to try as well, since whether one fits is not monotone; 0:
 * none.  =B: that size alone, so the samples/s of two planners stand side by side at one micro-batch.
 */
#include "view/largest.h"
#include "search/search.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };

typedef struct { const char *model, *devices, *planner; int stages, micro, sets; char **set; } Asked;

/* ---- one size ---------------------------------------------------------------------------------------------------- */

static void replace_devices(Node *root, const char *path)
{
    static const char *const keys[] = {"devices", "links", "hosts"};
    Node *with = load(path);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        Node *value = node_get(with, keys[k]), *key = alloc(sizeof *key);
        if (!value)
            continue;
        Node **name = alloc(sizeof *name * (size_t)(root->n + 1)), **at = alloc(sizeof *at * (size_t)(root->n + 1));
        int n = 0;
        *key = (Node){.kind = SCALAR, .loc = value->loc, .text = keys[k]};
        for (int i = 0; i < root->n; i++)
            if (strcmp(root->key[i]->text, keys[k])) {
                name[n] = root->key[i];
                at[n++] = root->at[i];
            }
        name[n] = key;
        at[n++] = value;
        root->key = name;
        root->at = at;
        root->n = n;
    }
}

static const Model *model_of(const Asked *r, int64_t b)
{
    Overrides over = {{0}, {0}};
    *PUSH(&over.set) = strf("train.batch.micro=%" PRId64, b);
    *PUSH(&over.set) = strf("train.batch.global=%" PRId64, b * r->micro);
    *PUSH(&over.set) = strf("plan.stages=%d", r->stages);
    *PUSH(&over.set) = "plan.schedule=1f1b";
    *PUSH(&over.set) = "plan.recompute=auto";
    *PUSH(&over.set) = strf("plan.planner=%s", r->planner);
    for (int i = 0; i < r->sets; i++)
        *PUSH(&over.set) = r->set[i];
    Node *root = load(r->model);
    replace_devices(root, r->devices);
    const Model *m = model(root, r->model, &over);
    bad_stop();
    return m;
}

/* 0: nothing fits. */
static Ns step_of(const Model *m)
{
    const Options quiet = {.estimate = true};
    Plan *failed, *p = search(&quiet, m, &failed);
    return p ? p->step : 0;
}

static Ns probe(void *ctx, int64_t b)
{
    Asked *r = ctx;
    int ends[2], status = 0;
    Ns ns = 0;
    if (pipe(ends))
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        Ns step = step_of(model_of(r, b));
        int64_t samples = b * r->micro;
        ns = step > 0 ? step / samples * 1000 + step % samples * 1000 / samples : 0;
        _exit(write(ends[1], &ns, sizeof ns) != sizeof ns);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &ns, sizeof ns);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        exit(1);
    if (status)                 /* a bug in dpgen, told by the child */
        fprintf(stderr, "row: %s, %s, micro-batch %" PRId64 ": status %d\n", r->model, r->planner, b, status);
    return got == sizeof ns ? ns : 0;
}

/* ---- the row ----------------------------------------------------------------------------------------------------- */

static double rate(Ns thousand)
{
    return thousand ? 1e12 / (double)thousand : 0;
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr, "row HINT MODEL.yaml DEVICES.yaml STAGES MICRO PLANNER [PATH=VALUE ...]\n");
        return 2;
    }
    Asked r = {argv[2], argv[3], argv[6], atoi(argv[4]), atoi(argv[5]), argc - 7, argv + 7};
    if (*argv[1] == '=') {
        int64_t b = atoll(argv[1] + 1);
        Ns at = probe(&r, b);
        b = at ? b : 0;
        printf("%" PRId64 " %.2f %" PRId64 " %.2f %" PRId64 " %.2f 1\n", b, rate(at), b, rate(at), b, rate(at));
        return 0;
    }
    Largest l = largest(probe, &r, MOST, atoll(argv[1]));
    printf("%" PRId64 " %.2f %" PRId64 " %.2f %" PRId64 " %.2f %d\n", l.b, rate(l.at_b), l.any, rate(l.at_any), l.best,
           rate(l.at_best), l.tried);
    return 0;
}
