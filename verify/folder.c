/* SPDX-License-Identifier: Apache-2.0
 *
 * folder.c: a folder: the tables of launch.c, the programs of the stages, and which states stand where.
 */
#include "verify.h"
#include <stdlib.h>
#include <string.h>

static const Node *needed(const Node *n, const char *field, const char *where)
{
    const Node *c = node_field(n, field);
    if (!c)
        stop(NOT_READ, "%s: .%s is missing", where, field);
    return c;
}

/* Absent: the least that it may be. */
static int64_t bounded(const Node *n, const char *field, int64_t least, int64_t most, const char *where)
{
    int64_t i = node_int(n, field, least);
    if (i < least || i > most)
        stop(NOT_READ, "%s: .%s is %lld", where, field, (long long)i);
    return i;
}

static const char *text_of(const Node *n, const char *where)
{
    if (n->kind != N_TEXT && n->kind != N_NAME)
        stop(NOT_READ, "%s:%d: a name must stand here", where, n->line);
    return n->text;
}

/* ---- states, one row a parameter ---------------------------------------------------------------------------------- */

static Held *hold(Stage *s, const char *param, const char *kind, int64_t at, int64_t bytes, int line)
{
    if (at < 0 || at > MOST_BYTES || bytes < 0 || bytes > MOST_BYTES)
        stop(NOT_READ, "%s: the %s of %s, line %d: no place and size", s->name, kind, param, line);
    Held *h = ADD(&s->held);
    *h = (Held){.param = name_of(param, strlen(param)), .kind = kind, .at = at, .bytes = bytes, .whole = bytes, .kept = 1,
                .line = line};
    return h;
}

/* {so many of the parameter, so many of its copy, bytes apart} */
static void keep_versions(Held *h, const Node *versions)
{
    const Node *first = versions ? versions->child : NULL, *second = first ? first->next : NULL;
    const Node *third = second ? second->next : NULL;
    bool copy = !strcmp(h->kind, "copy");
    int64_t kept = third ? (copy ? second : first)->i : 0, stride = third ? third->i : 0;
    if (kept < 2 || (!copy && strcmp(h->kind, "param")))
        return;
    if (kept > 4096 || stride < h->bytes || stride > MOST_BYTES / 4096)
        stop(NOT_READ, "%s, line %d: %lld versions, %lld bytes apart", h->param, h->line, (long long)kept, (long long)stride);
    h->kept = (int)kept;
    h->stride = stride;
}

static int64_t elements(const Node *row)
{
    int64_t n = 1;
    const Node *shape = needed(row, "shape", "a parameter");
    for (const Node *c = shape->child; c; c = c->next) {
        if (c->kind != N_INT || c->i < 1 || n > ((int64_t)1 << 48) / c->i)
            stop(NOT_READ, "a parameter, line %d: no shape", row->line);
        n *= c->i;
    }
    return n;
}

/* A replica may have a part of each state but the parameter and its copy. */
static void hold_part(const Stage *s, Held *h, const Node *row)
{
    int64_t from = node_int(row, "from", 0), part = node_int(row, "part", 0), n = h->bytes / 4;
    if (from < 0 || part < 0 || from > n || part > n - from)
        stop(NOT_READ, "%s.c:%d: %s: no part of it", s->name, row->line, h->param);
    h->part = true;
    h->from = 4 * from;
    h->bytes = 4 * part;
}

/* A device of several has a part of some. */
static void hold_stretches(const Stage *s, Held *h, const Node *row, int devices)
{
    int64_t stretches = node_int(row, "outer", 0), each = node_int(row, "room", 0), size = !strcmp(h->kind, "copy") ? 2 : 4;
    if (!stretches && !each)
        return;
    if (stretches < 1 || stretches > INT32_MAX || devices < 2 || h->whole % (size * stretches) || each < 1 ||
        each > h->whole / (size * stretches) || each < (h->whole / (size * stretches) + devices - 1) / devices)
        stop(NOT_READ, "%s.c:%d: %s: no part that one of %d devices has", s->name, row->line, h->param, devices);
    h->stretches = stretches;
    h->bytes = h->room = size * stretches * each;
}

static void hold_kind(Stage *s, const Node *row, const char *name, const char *kind, int64_t n, int devices)
{
    const Node *at = node_field(row, kind);
    if (!at || (at->kind == N_NAME && !strcmp(at->text, "EMPTY")))
        return;
    if (at->kind != N_CALL || strcmp(at->text, "AT") || !at->child || at->child->kind != N_INT)
        stop(NOT_READ, "%s.c:%d: %s: .%s is no offset", s->name, row->line, name, kind);
    bool copy = !strcmp(kind, "copy");
    int64_t bits = node_int(row, "bits", 0), few = bits == 8 ? n + 4 * node_field(row, "shape")->child->i : (n + 63) / 64 * 36;
    Held *h = hold(s, name, kind, at->child->i, !copy ? 4 * n : bits ? few : 2 * n, row->line);
    hold_stretches(s, h, row, devices);
    keep_versions(h, node_field(row, "versions"));
    int64_t cut = node_int(row, "cut", 0), bit = !strcmp(kind, "param") ? 4 : !strcmp(kind, "grad") ? 2 : 1;
    if (cut & bit && !copy)
        hold_part(s, h, row);
}

/* The runtime takes as many rows as .parameters says. */
static void states_in_parameters(Stage *s, const Node *at, const Node *table, int devices)
{
    static const char *const kinds[] = {"param", "copy", "grad", "moment1", "moment2", "centre", "drift"};
    int64_t rows = 0;
    for (const Node *row = table ? table->child : NULL; row; row = row->next, rows++) {
        if (row->child && !row->child->field && !row->next)
            break;              /* the end */
        const char *name = text_of(needed(row, "name", s->name), s->name);
        int64_t n = elements(row);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            hold_kind(s, row, name, kinds[k], n, devices);
    }
    if (node_int(at, "parameters", 0) != rows)
        stop(NOT_PROVED, "%s.c:%d: .parameters is not %lld, the rows of its table", s->name, at->line, (long long)rows);
}

/* The runtime has room for as many actions as are counted, and reads the begin and the end of those of the step. */
static void actions_counted(const Stage *s, const Node *at, const char *where)
{
    int64_t step = bounded(at, "actions", 0, INT32_MAX, where), all = step + bounded(at, "eval_actions", 0, INT32_MAX, where);
    for (int i = 0; i < s->program.routine.n; i++)
        for (int k = 0; k < s->program.routine.at[i].site.n; k++) {
            const Site *x = &s->program.routine.at[i].site.at[k];
            const Arg *number = x->row && !strcmp(x->row->name, "action") ? &x->arg[0] : NULL;
            if (number && (number->param >= 0 || number->i < 0 || number->i >= all))
                stop(NOT_PROVED, "%s:%d: no action of the %lld that are counted", where, x->line, (long long)all);
        }
    const Node *times = node_field(at, "predicted") ? program_table(&s->program, "predicted") : NULL;
    int64_t n = 0;
    for (const Node *c = times ? times->child : NULL; c; c = c->next)
        n++;
    if (times && n != 2 * step)
        stop(NOT_PROVED, "%s: %lld times are predicted, and %lld actions of a step counted", where, (long long)n,
             (long long)step);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static void read_source(Program *p, const char *dir, const char *name)
{
    Source s;
    if (!source_read(&s, dir, name))
        stop(NOT_READ, "%s/%s cannot be opened", dir, name);
    program_read(p, &s);
}

static void read_stage(Folder *f, const char *dir, int d)
{
    Stage *s = &f->stage[d];
    s->name = joined_text("stage%d", d);
    read_source(&s->program, dir, joined_text("stage%d.h", d));
    read_source(&s->program, dir, joined_text("stage%d.c", d));
    const Node *at = program_table(&s->program, "stage_take");
    const char *where = joined_text("%s.c", s->name);
    if (!at)
        stop(NOT_READ, "%s: nothing says what the stage is", where);
    needed(at, "arena", where);
    s->arena = bounded(at, "arena", 0, MOST_BYTES, where);
    s->vals = bounded(at, "vals", 0, MOST_BYTES, where);
    s->host = node_int(at, "host", 0);
    const Node *piece = node_field(at, "piece");
    s->phases = piece ? (int)bounded(at, "phases", 1, 4096, where) : 1;
    for (int k = 0; k < PIECES && !piece; k++)
        *ADD(&s->piece) = k < ALONE ? "of this phase" : text_of(needed(at, k == ALONE ? "step" : "eval", where), where);
    const Node *table = piece ? program_table(&s->program, text_of(piece, where)) : NULL;
    for (const Node *c = table ? table->child : NULL; c; c = c->next)
        *ADD(&s->piece) = c->kind == N_NAME ? c->text : "of this phase";
    const Node *open = node_field(at, "open");
    int opens = open && open->kind == N_NAME ? map_at(&s->program.routines, open->text) : -1;
    s->program.open = opens < 0 ? NULL : &s->program.routine.at[opens];
    s->program.prepares = !strcmp(f->kernels, "onednn") || !strcmp(f->kernels, "cuda") ||
                          (s->program.open && s->program.open->opens.n > 0);
    for (int i = 0; i < s->program.routine.n; i++) {
        const Routine *r = &s->program.routine.at[i];
        if (i == opens ? r->site.n : r->opens.n)
            stop(NOT_PROVED, "%s:%d: %s: handles are prepared in .open alone, and nothing else is done there", where, r->line,
                 r->name);
    }
    int eval = s->piece.n > EVAL ? map_at(&s->program.routines, s->piece.at[EVAL]) : -1;
    f->evaluates |= eval >= 0 && s->program.routine.at[eval].site.n > 0;
    s->pipeline = (int)node_int(at, "pipeline", 0);
    s->like = (int)bounded(at, "like", 0, f->homes ? f->homes - 1 : 0, where);
    s->copy = (int)bounded(at, "copy", 0, f->replicas - 1, where);
    s->turns = (int)bounded(at, "turns", 1, f->replicas - s->copy, where);
    states_in_parameters(s, at, program_table(&s->program, text_of(needed(at, "parameter", where), where)), f->devices);
    actions_counted(s, at, where);
}

/* Stage d is what the d-th function describes. */
static void in_order(const Node *sources, int stages)
{
    int d = 0;
    for (const Node *c = sources->child; c; c = c->next, d++)
        if (c->kind != N_NAME || strcmp(c->text, joined_text("stage%d", d)))
            stop(NOT_READ, "launch.c: source %d is not stage%d", d, d);
    if (d != stages)
        stop(NOT_READ, "launch.c: %d sources, %d stages", d, stages);
}

/* A library is compiled from NAME.c: each file that is read here stands there, but for what it includes. */
static void library_holds(const Node *job, const char *dir, int stages)
{
    static const char include[] = "\n#include \"";
    const Node *name = node_field(job, "program");
    Source all, one;
    const char *whole = name && name->kind == N_TEXT && !strchr(name->text, '/') ? joined_text("%s.c", name->text) : NULL;
    if (!whole || !source_read(&all, dir, whole))
        return;
    for (int i = 0; i <= 2 * stages; i++) {
        const char *file = i ? joined_text(i % 2 ? "stage%d.h" : "stage%d.c", (i - 1) / 2) : "launch.c";
        if (!source_read(&one, dir, file))
            stop(NOT_READ, "%s/%s cannot be opened", dir, file);
        const char *at = one.at, *next;
        while ((next = strstr(at, include)) != NULL)
            at = next + sizeof include;
        at += at == one.at ? 0 : strcspn(at, "\n");
        if (!strstr(all.at, at))
            stop(NOT_PROVED, "%s does not hold %s as it stands in this folder", whole, file);
    }
}

void folder_read(Folder *f, const char *dir)
{
    Program launch = {0};
    read_source(&launch, dir, "launch.c");
    const Node *job = program_table(&launch, "job"), *sources = program_table(&launch, "source");
    if (!job || !sources)
        stop(NOT_READ, "launch.c: there is no table job, or none of the stages");
    f->job = job;
    f->group = program_table(&launch, "param_group");
    f->stages = (int)bounded(job, "stages", 1, 4096, "launch.c");
    int64_t devices = bounded(job, "team", 1, 4096, "launch.c"), blocks = node_int(job, "blocks", 1);
    bool powers = !(devices & (devices - 1)) && (devices == 1 || !(blocks & (blocks - 1)));
    if (!powers || (devices > 1 && blocks < devices))
        stop(NOT_READ, "launch.c: .team, .blocks: %lld devices cannot share sums in %lld blocks", (long long)devices,
             (long long)blocks);
    f->devices = (int)devices;
    f->replicas = (int)bounded(job, "replicas", 1, f->stages, "launch.c");
    f->ways = (int)bounded(job, "ways", 1, 4096, "launch.c");
    f->homes = (int)bounded(job, "homes", 0, f->stages, "launch.c");
    f->batch = node_int(job, "batch", 0);
    f->micro = node_int(job, "micro", 0);
    f->groups = node_int(job, "groups", 1);
    f->blocks = node_int(job, "blocks", 0);
    f->bf16 = node_int(job, "bf16", 0) != 0;
    f->kernels = text_of(needed(job, "kernels", "launch.c"), "launch.c");
    f->overlap = (int)bounded(job, "overlap", 0, 4096, "launch.c");
    f->param_groups = (int)bounded(job, "param_groups", 0, 4096, "launch.c");
    f->versions = f->overlap ? text_of(needed(job, "versions", "launch.c"), "launch.c") : NULL;
    if (f->versions && !overlap_known(f->versions))
        stop(NOT_READ, "launch.c: .versions: a rule that dpgen-verify does not know");
    in_order(sources, f->stages);
    f->stage = room(sizeof *f->stage * (size_t)f->stages);
    for (int d = 0; d < f->stages; d++)
        read_stage(f, dir, d);
    library_holds(job, dir, f->stages);
}

/* The numbers of the word are those of a list with commas between, which the text of a graph may write as %2C%20. */
static bool same_numbers(const Node *c, const char *list)
{
    static const char comma[] = "%2C%20";
    char *end = NULL;
    for (; c && *list; c = c->next, list = end + (!strncmp(end, comma, strlen(comma)) ? strlen(comma) : *end == ',')) {
        double want = strtod(list, &end);
        if (end == list || (c->kind != N_FLOAT && c->kind != N_INT) || (c->kind == N_FLOAT ? c->f : (double)c->i) != want)
            return false;
    }
    return !c && !*list;
}

void folder_starts(const Folder *f, const Graph *g)
{
    static const char *const words[][2] = {{"zeros", "ZEROS"}, {"ones", "ONES"}, {"normal", "NORMAL"}, {"uniform", "UNIFORM"},
        {"sines", "SINES"}, {"values", "VALUES"}};
    for (int d = 0; d < f->stages; d++) {
        const Program *p = &f->stage[d].program;
        const Node *table = program_table(p, node_field(program_table(p, "stage_take"), "parameter")->text);
        for (const Node *row = table ? table->child : NULL; row && row->next; row = row->next) {
            int at = map_at(&g->states, node_field(row, "name")->text);
            const Thing *t = at < 0 ? NULL : &g->state.at[at];
            const Node *start = needed(row, "start", f->stage[d].name);
            size_t k = 0;
            while (t && k < sizeof words / sizeof *words - 1 && strcmp(words[k][0], t->init))
                k++;
            const char *numbers = !t || k < 2 ? "" : *t->values ? t->values : joined_text("%s,%s", t->a, t->b);
            if (t && (!start->text || strcmp(start->text, words[k][1]) || !same_numbers(start->child, numbers)))
                stop(NOT_PROVED, "%s.c:%d: %s does not start as model.graph says: %s", f->stage[d].name, row->line, t->name,
                     words[k][1]);
        }
    }
}
