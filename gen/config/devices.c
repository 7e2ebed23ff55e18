/* SPDX-License-Identifier: Apache-2.0
 *
 * devices.c: what the model is trained on and how the plan may look: the sections devices and plan.
 *
 * needs   nothing but the dims       fills   Model.devices, plan
 * fails   with bad(); what this version does not build is refused as such, and devices of any kind can be planned for
 */
#include "schema.h"

enum { MOST_DEVICES = 2048, MOST_THREADS = 1024, MOST_SPARE = 64, MOST_CHUNKS = 256, MOST_REPLICAS = 64, MOST_OPS = 1 << 20 };
static const Bytes DEFAULT_MEMORY = (Bytes)8 << 30, WORKSPACE = (Bytes)32 << 20, LEAST_WORKSPACE = (Bytes)2 << 20;

/* ---- devices ----------------------------------------------------------------------------------------- */

typedef struct { Device d; int count; } DeviceEntry; /* one line of the list */

/* One rate for all types of compute, or one for each; that of fp8 may be missing. */
static void read_peak(const Spot *s)
{
    static const Field types[] = {
        { "f32", read_flops, 0, 0, 0, NULL }, { "bf16", read_flops, sizeof(double), 0, 0, NULL },
        { "fp8", read_flops, 2 * sizeof(double), 0, 0, NULL },
    };
    double *to = s->to;
    if (s->value->kind == MAP) {
        section(s->m, s->value, s->path, types, COUNT(types), to);
        return;
    }
    read_flops(s);
    to[1] = to[0];
}

static void read_efficiency(const Spot *s)
{
    static const Field parts[] = {
        { "product", read_above, offsetof(Device, product_share), 0, 1, NULL },
        { "memory", read_above, offsetof(Device, memory_share), 0, 1, NULL },
    };
    section(s->m, s->value, s->path, parts, COUNT(parts), s->to);
}

static void read_arch(const Spot *s)
{
    read_name(s);
    *PUSH(&s->m->marks) = (Mark){ s->value->text, s->value->loc };
    const char *name = s->value->kind == SCALAR ? s->value->text : "sm_1", *number = name + 3, *end = number;
    end += strncmp(name, "sm_", 3) ? 0 : strspn(end, "0123456789");
    if (end == number || *number == '0' || end - number > 3 || end[*end == 'a' || *end == 'f'])
        bad(s->value->loc, "write it like sm_90", "%s: '%s' is no CUDA architecture", s->path, s->value->text);
}

static void entry_check(const Spot *s, DeviceEntry *e)
{
    Device *d = &e->d;
    bool gpu = target_of(d)->gpu;
    static const char *const cpu_keys[] = { "kernels", "threads", "isa" }, *const gpu_keys[] = { "arch", "workspace", "spare" };
    for (int i = 0; i < COUNT(cpu_keys) && gpu; i++)
        if (node_get(s->value, cpu_keys[i]))
            bad(node_get(s->value, cpu_keys[i])->loc, "delete it", "'%s' is not for devices of kind %s", cpu_keys[i], d->kind);
    for (int i = 0; i < COUNT(gpu_keys) && !gpu; i++)
        if (node_get(s->value, gpu_keys[i]))
            bad(node_get(s->value, gpu_keys[i])->loc, "delete it", "'%s' is only for devices of kind cuda", gpu_keys[i]);
    if (gpu && !d->memory)
        bad(s->value->loc, "write memory: 80GiB, less what other programs use", "%s has no 'memory'", s->path);
    d->memory = d->memory ? d->memory : DEFAULT_MEMORY;
    if (d->workspace < 0)
        d->workspace = gpu ? WORKSPACE : 0;
    if (gpu && d->workspace < LEAST_WORKSPACE)
        bad(node_get(s->value, "workspace")->loc, "2MiB", "%s: kernels share a workspace, and need 2MiB of it", s->path);
    if (d->memory <= d->reserve + d->workspace)
        bad(s->value->loc, NULL, "%s: a memory of %lld bytes less a reserve of %lld%s leaves nothing", s->path,
            (long long)d->memory, (long long)d->reserve,
            d->workspace ? strf(" and a workspace of %lld", (long long)d->workspace) : "");
    d->memory -= d->reserve + d->workspace;
    if (!d->kernels)
        d->kernels = target_of(d)->kernels;
    if (!d->isa)        /* oneDNN has other bits on another instruction set: the plan fixes it.  Ours have not. */
        d->isa = library_of(d)->isa;
    if (!library_of(d)->anywhere && !gpu && !strcmp(d->isa, "native"))
        bad(node_get(s->value, "isa")->loc, strf("such as %s", library_of(d)->isa),
            "the bits of %s depend on the instruction set: name it", d->kernels);
    if (!d->name)
        d->name = d->kind;
}

static void device_add(Model *m, Device d, const char *name)
{
    d.name = name;
    d.entry = m->devices.n;
    for (EACH(const Device, other, m->devices))
        if (!strcmp(other->name, name)) {
            bad(d.loc, "give each entry a name of its own", "a second device named '%s'", name);
            return;
        }
    if (m->devices.n && (strcmp(m->devices.at[0].kind, d.kind) || strcmp(m->devices.at[0].kernels, d.kernels))) {
        bad(d.loc, "one job runs on one kind of device and one kernel library",
            "'%s' is %s with %s kernels, '%s' is %s with %s", name, d.kind, d.kernels, m->devices.at[0].name,
            m->devices.at[0].kind, m->devices.at[0].kernels);
        return;
    }
    if (m->devices.n && !library_of(&d)->anywhere &&
        (m->devices.at[0].threads != d.threads
         || strcmp(m->devices.at[0].isa ? m->devices.at[0].isa : "", d.isa ? d.isa : ""))) {
        bad(d.loc, "give all devices of the job the same",
            "'%s' has other threads or another isa than '%s': the bits of %s kernels depend on them", name,
            m->devices.at[0].name, d.kernels);
        return;
    }
    *PUSH(&m->devices) = d;
}

static void read_entry(const Spot *s)
{
    static const Field fields[] = {
        { "name", read_name, offsetof(DeviceEntry, d.name), 0, 0, NULL },
        { "kind", read_word, offsetof(DeviceEntry, d.kind), 0, 0, target_words + 1 },
        { "count", read_count, offsetof(DeviceEntry, count), 1, MOST_DEVICES, NULL },
        { "memory", read_bytes, offsetof(DeviceEntry, d.memory), 1, 0, NULL },
        { "reserve", read_bytes, offsetof(DeviceEntry, d.reserve), 0, 0, NULL },
        { "workspace", read_bytes, offsetof(DeviceEntry, d.workspace), 0, 0, NULL },
        { "threads", read_count, offsetof(DeviceEntry, d.threads), 1, MOST_THREADS, NULL },
        { "spare", read_count, offsetof(DeviceEntry, d.spare), 0, MOST_SPARE, NULL },
        { "kernels", read_word, offsetof(DeviceEntry, d.kernels), 0, 0, library_words + 1 },
        { "isa", read_word, offsetof(DeviceEntry, d.isa), 0, 0,
          "native x86-64 x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4+bf16 x86-64-v4+amx" },
        { "flops", read_peak, offsetof(DeviceEntry, d.flops), 0, 0, NULL },
        { "vector", read_flops, offsetof(DeviceEntry, d.vector), 0, 0, NULL },
        { "bandwidth", read_rate, offsetof(DeviceEntry, d.bandwidth), 0, 0, NULL },
        { "efficiency", read_efficiency, offsetof(DeviceEntry, d), 0, 0, NULL },
        { "call", read_time, offsetof(DeviceEntry, d.call), 0, 0, NULL },
        { "arch", read_arch, offsetof(DeviceEntry, d.arch), 0, 0, NULL },
    };
    DeviceEntry e = { .d = { .kind = "cpu", .workspace = -1, .threads = 1, .loc = s->value->loc }, .count = 1 };
    section(s->m, s->value, s->path, fields, COUNT(fields), &e);
    entry_check(s, &e);
    if (s->m->devices.n + e.count > MOST_DEVICES) {
        bad(s->value->loc, NULL, "more than %d devices", MOST_DEVICES);
        return;
    }
    for (int i = 0; i < e.count; i++)
        device_add(s->m, e.d, e.count > 1 ? strf("%s.%d", e.d.name, i) : e.d.name);
}

static void read_list(const Spot *s)
{
    if (!want(s, LIST, "a list of devices"))
        return;
    if (!s->value->n)
        bad(s->value->loc, NULL, "%s is empty", s->path);
    for (int i = 0; i < s->value->n && s->m->devices.n <= MOST_DEVICES; i++)
        read_entry(spot_item(s, i, NULL, NULL));
}

/* what --limit makes of a file without devices: devices.*.memory */
static void read_any(const Spot *s)
{
    static const Field any[] = { { "memory", read_bytes, offsetof(Model, memory), 1, 0, NULL } };
    section(s->m, s->value, s->path, any, COUNT(any), s->m);
}

/* A list, or {order: free, list: [...]}; override.c lets paths name entries of either. */
void model_devices(Model *m, Node *node)
{
    static const Field fields[] = {
        { "list", read_list, 0, 0, 0, NULL },
        { "order", read_choice, offsetof(Model, device_order), 0, 0, "given free" },
        { "*", read_any, 0, 0, 0, NULL },
    };
    Spot list = { m, NULL, "devices", node, NULL };
    bool known = false;
    for (int i = 0; i < COUNT(fields) && node && node->kind == MAP; i++)
        known |= node_get(node, fields[i].key) != NULL;
    const Node *order = node_get(node, "order");
    m->order_at = order ? order->loc : m->order_at;
    if (known)
        section(m, node, "devices", fields, COUNT(fields), m);
    if (order && !node_get(node, "list"))
        bad(m->order_at, "list: [...] beside it", "devices.order: there is no list of devices to take in an order");
    else if (node && !known)
        read_list(&list);
}

bool device_is(const Device *d, const char *name, size_t n)
{
    return !strncmp(d->name, name, n) && (!d->name[n] || d->name[n] == '.');
}

bool device_known(const Model *m, const char *name, size_t n)
{
    for (int i = 0; i < m->devices.n; i++)
        if (device_is(&m->devices.at[i], name, n))
            return true;
    return false;
}

/* ---- plan -------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(PlanSpec, field)
enum { BUILT = 1                /* of schedule_words: auto, and */
#define SCHEDULE(...) + 1
#define LATER(word)
#include "schedules.def"
};
static const char planner_words[] =
#define PLANNER(word, ...) " " word
#define VARIANTS(word) " " word
#include "planners.def"
;

static void read_stages(const Spot *s)
{
    static const Field one = { NULL, NULL, 0, 1, MOST_DEVICES, "a number, auto or {min: 1, max: 4}" };
    static const Field fields[] = {
        { "min", read_count, AT(stages_min), 1, MOST_DEVICES, NULL },
        { "max", read_count, AT(stages_max), 1, MOST_DEVICES, NULL },
    };
    PlanSpec *p = s->to;
    bool any;
    if (s->value->kind == MAP) {
        section(s->m, s->value, s->path, fields, COUNT(fields), p);
        return;
    }
    read_some(spot_as(s, &one, NULL), &p->stages_max, &any);
    p->stages_min = p->stages_max;
}

void read_some(const Spot *s, int *to, bool *any)
{
    const char *text = s->value->kind == SCALAR ? s->value->text : "1";
    double known;
    *any = is_word(s->value, "auto");
    if (*text && strspn(text, C_LETTERS) == strlen(text) && !*any && !number_lookup(s->m, text, &known))
        bad(s->value->loc, NULL, "%s: %s is expected, and '%s' found", s->path,
            s->field->words ? s->field->words : "a number or auto", text);
    else if (!*any)
        read_count(spot_to(s, to));
}

static void read_replicas(const Spot *s)
{
    PlanSpec *p = s->to;
    read_some(s, &p->replicas, &p->replicas_auto);
}

static void read_chunks(const Spot *s)
{
    PlanSpec *p = s->to;
    read_some(s, &p->chunks, &p->chunks_auto);
}

static void read_recompute(const Spot *s)
{
    static const Field words = { NULL, NULL, 0, 0, 0, "none full auto" };
    static const Recompute kinds[] = { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_AUTO };
    PlanSpec *p = s->to;
    int kind = 0;
    p->recompute_at = s->value->loc;
    if (s->value->kind == LIST) {
        read_texts(spot_to(s, &p->names));
        p->recompute = RECOMPUTE_LIST;
        return;
    }
    read_choice(spot_as(s, &words, &kind));
    p->recompute = kinds[kind];
}

/* auto, or names of operators whose results go */
static void read_away(const Spot *s)
{
    PlanSpec *p = s->to;
    if (is_word(s->value, "auto")) {
        p->offload = OFFLOAD_AUTO;
        return;
    }
    if (s->value->kind != LIST) {
        bad(s->value->loc, "auto, or a list of operators", "%s: what is offloaded?", s->path);
        return;
    }
    read_texts(spot_to(s, &p->away));
    p->offload = OFFLOAD_LIST;
}

/* none, auto, a list, or {to: disk, what: auto, dir: PATH} */
static void read_offload(const Spot *s)
{
    static const Field words = { NULL, NULL, 0, 0, 0, "none auto" };
    static const Field fields[] = {
        { "to", read_second, AT(disk), 0, 0, "host disk" },
        { "what", read_away, 0, 0, 0, NULL },
        { "dir", read_text, AT(dir), 0, 0, NULL },
    };
    static const OffloadKind kinds[] = { OFFLOAD_NONE, OFFLOAD_AUTO };
    PlanSpec *p = s->to;
    int kind = 0;
    if (s->value->kind == MAP) {
        p->offload = OFFLOAD_AUTO;
        section(s->m, s->value, s->path, fields, COUNT(fields), p);
        const Node *dir = node_get(s->value, "dir");
        if (dir && !p->disk)
            bad(dir->loc, "write to: disk", "%s.dir is only for files", s->path);
    } else if (s->value->kind == LIST) {
        read_away(s);
    } else {
        read_choice(spot_as(s, &words, &kind));
        p->offload = kinds[kind];
    }
}

static void read_same_stage(const Spot *s)
{
    PlanSpec *p = &s->m->plan;
    Strs names = { NULL, 0, 0 };
    read_texts(spot_to(s, &names));
    if (names.n < 2)
        bad(s->value->loc, NULL, "%s: two names or more are expected", s->path);
    Strs *to = (Strs *)PUSH(&p->same_stage);
    *to = names;
}

typedef struct { Bytes memory; const char *device; } MaxMemory;

static void read_constraint(const Spot *s)
{
    static const Field fields[] = {
        { "same_stage", read_same_stage, 0, 0, 0, NULL },
        { "cut_after", read_texts, offsetof(Model, plan.cut_after), 1, 0, NULL },
        { "no_cut", read_texts, offsetof(Model, plan.no_cut), 1, 0, NULL },
        { "keep", read_texts, offsetof(Model, plan.keep), 1, 0, NULL },
    };
    static const Field limit[] = {
        { "max_memory", read_bytes, offsetof(MaxMemory, memory), 1, 0, NULL },
        { "device", read_name, offsetof(MaxMemory, device), 0, 0, NULL },
    };
    if (!node_get(s->value, "max_memory")) {
        if (s->value->kind == MAP && s->value->n > 1)
            bad(s->value->key[1]->loc, "write an entry for each", "%s: an entry is one constraint", s->path);
        section(s->m, s->value, s->path, fields, COUNT(fields), s->m);
        return;
    }
    MaxMemory max = { 0, NULL };
    section(s->m, s->value, s->path, limit, COUNT(limit), &max);
    if (max.device && !device_known(s->m, max.device, strlen(max.device)))
        bad(node_get(s->value, "device")->loc, NULL, "there is no device '%s'", max.device);
    for (EACH(Device, d, s->m->devices)) {
        bool named = !max.device || device_is(d, max.device, strlen(max.device));
        if (!named || max.memory == 0 || d->memory <= max.memory)
            continue;
        d->without = d->without ? d->without : d->memory;           /* what it had */
        d->memory = max.memory;
    }
}

static void read_constraints(const Spot *s)
{
    if (!want(s, LIST, "a list of constraints"))
        return;
    for (int i = 0; i < s->value->n; i++)
        read_constraint(spot_item(s, i, NULL, NULL));
}

static void read_cuts(const Spot *s)
{
    const Ints *cuts = s->to;
    read_counts(s);
    for (int i = 1; i < cuts->n && cuts->n == s->value->n; i++)
        if (cuts->at[i] <= cuts->at[i - 1])
            bad(s->value->at[i]->loc, NULL, "%s[%d]: positions ascend, and %d comes after %d", s->path, i, cuts->at[i],
                cuts->at[i - 1]);
}

static const Schedule *given(void)
{
    const Schedule *k = schedules;
    while (!k->given)
        k++;
    return k;
}

static void read_table(const Spot *s)
{
    const char *path = NULL;
    read_text(spot_to(s, &path));
    if (path)
        s->m->plan.table = table_read(path);
}

/* A table is a schedule of its own, and says where the chunks are. */
static void table_end(PlanSpec *p, const Node *schedule)
{
    if (!p->table && schedule_of(p->schedule)->given)
        bad(schedule->loc, "plan.order: FILE, or --order FILE", "schedule %s is the lists of a file, and plan.order names none",
            p->schedule);
    if (!p->table)
        return;
    if (schedule && !schedule_open(p->schedule) && !schedule_of(p->schedule)->given)
        bad(p->order_at, "delete plan.schedule, or plan.order", "plan.order is a schedule of its own, and plan.schedule is %s",
            p->schedule);
    if (p->map.n)
        bad(p->map_at, "delete it", "plan.map: the table of plan.order says where the chunks are");
    p->schedule = given()->name;
    p->map = p->table->map;
    p->map_at = p->order_at;
}

/* A map says how many stages there are, and how many chunks the fullest of them holds. */
static void map_end(PlanSpec *p, Loc chunks_at)
{
    int stages = 0, most = 0, *held = alloc(sizeof *held * MOST_DEVICES);
    for (int c = 0; c < p->map.n; c++) {
        int d = p->map.at[c];
        stages = d + 1 > stages ? d + 1 : stages;
        held[d]++;
        most = held[d] > most ? held[d] : most;
    }
    for (int d = 0; d < stages; d++)
        if (!held[d])
            bad(p->map_at, strf("number the devices 0 to %d without a gap", stages - 1), "plan.map: device %d has no chunk", d);
    if (chunks_at.line)
        bad(chunks_at, "delete it", "plan.chunks: %s says how many chunks a device holds", p->table ? "plan.order" : "the map");
    if (p->stages_max && (p->stages_min > stages || p->stages_max < stages))
        bad(p->map_at, strf("--stages %d, or none", stages), "%s has %d devices, and other stages are asked for",
            p->table ? "the table of plan.order" : "plan.map", stages);
    p->stages_min = p->stages_max = stages;
    p->chunks = most;
}

/* Which devices take part, and that the gradient groups can be dealt out to the replicas. */
static void replicas_end(Model *m)
{
    PlanSpec *p = &m->plan;
    int r = p->replicas;
    int64_t g = m->train.groups;
    if (r & (r - 1))
        bad(p->replicas_at, "1, 2, 4, 8 ...", "plan.replicas: %d is no power of two: sums of replicas are a binary tree", r);
    else if (g & (g - 1))
        bad(p->replicas_at, "make train.batch.groups a power of two", "plan.replicas: %lld gradient groups are no power of two",
            (long long)g);
    else if (g % r)
        bad(p->replicas_at, strf("set train.batch.groups to %d or a multiple: another numeric key", r),
            "plan.replicas: %lld gradient group%s cannot be dealt out to %d replicas", (long long)g, g > 1 ? "s" : "", r);
}

/* What the warm-up of the schedule is chosen for. */
static void warmup_end(const PlanSpec *p, Loc at)
{
    const Schedule *usual = schedule_of("auto");
    if (!schedule_of(p->schedule)->warmups)
        bad(at, strf("--schedule %s", usual->name), "plan.warmup is of schedule %s; %s has one warm-up", usual->name,
            p->schedule);
    else if (p->chunks > 1 || p->map.n)
        bad(at, "warmup: A", "plan.warmup: stages of several chunks have one warm-up");
}

/* auto is 1 to all devices, or what the cuts say. */
static void stages_end(Model *m, Loc at)
{
    PlanSpec *p = &m->plan;
    if (p->cuts.n && !p->stages_max && (p->cuts.n + 1) % p->chunks == 0)
        p->stages_min = p->stages_max = (p->cuts.n + 1) / p->chunks;
    if (!m->devices.n) {
        /* Without a section: processors, as many as stages were asked for. */
        int n = devices_for(m, m->plan.stages_max > 1 ? m->plan.stages_max : 1);
        Device d = { .kind = "cpu", .kernels = "portable", .isa = "native", .threads = 1,
                     .memory = m->memory ? m->memory : DEFAULT_MEMORY };
        for (int i = 0; i < n; i++)
            device_add(m, d, n > 1 ? strf("cpu.%d", i) : "cpu");
    }
    p->stages_min = p->stages_min ? p->stages_min : 1;
    if (!p->stages_max)
        p->stages_max = m->devices.n >= p->replicas ? m->devices.n / p->replicas : 1;
    const int all = devices_for(m, p->stages_max), each = m->listed.n ? p->tensor : 1;
    if (all > m->devices.n)
        bad(p->widths.n ? p->widths_at : at, strf("list %d devices, or give an entry of devices a count", all * each),
            "%s%s%s, and %s", p->widths.n ? "plan.widths: " : p->replicas > 1 ? strf("%d replicas of ", p->replicas) : "",
            p->widths.n ? strf("%d copies", all) : count_text(p->stages_max, "stage"),
            each > 1 ? strf(" of %d devices", each) : "", count_text(m->devices.n * each, "device"));
    else if (p->stages_min > p->stages_max)
        bad(at, NULL, "at least %d stages and at most %d", p->stages_min, p->stages_max);
    if (p->cuts.n && p->chunks_auto)
        bad(p->cuts_at, "say plan.chunks", "plan.cuts are of one number of chunks, and plan.chunks is auto");
    else if (p->cuts.n && p->map.n && p->cuts.n + 1 != p->map.n)
        bad(p->cuts_at, NULL, "%s, so %d chunks; plan.map has %d", count_text(p->cuts.n, "cut"), p->cuts.n + 1, p->map.n);
    else if (p->cuts.n && !p->map.n && (p->stages_min != p->stages_max || p->cuts.n + 1 != p->stages_max * p->chunks))
        bad(p->cuts_at, NULL, "%s, so %d chunks; %s of %s asked for", count_text(p->cuts.n, "cut"), p->cuts.n + 1,
            count_text(p->stages_max, "stage"), count_text(p->chunks, "chunk"));
}

/* Who chooses the device of each stage? */
static void order_end(const Model *m)
{
    const PlanSpec *p = &m->plan;
    static const char form[] = "devices.order: free chooses the device of each stage, and %s";
    if (m->device_order != ORDER_FREE)
        return;
    if (p->map.n)
        bad(m->order_at, "delete plan.map, or take order: given", form, "plan.map names them");
    else if (p->chunks > 1 || p->chunks_auto)
        bad(m->order_at, "take plan.chunks: 1, or order: given", form, "plan.chunks gives each several");
    else if (p->replicas > 1 || p->replicas_auto || p->widths_auto)
        bad(m->order_at, "take plan.replicas: 1, or order: given", form, "replicas take them in the order of the list");
}

void model_plan(Model *m, Node *node)
{
    static const Field fields[] = {
        { "stages", read_stages, 0, 0, 0, NULL }, { "chunks", read_chunks, 0, 1, MOST_CHUNKS, NULL },
        { "group", read_count, AT(group), 1, MOST_OPS, NULL },
        { "waves", read_count, AT(waves), 1, MOST_CHUNKS / 2, NULL },
        { "map", read_counts, AT(map), 0, MOST_DEVICES - 1, "a list of devices, one for each chunk" },
        { "replicas", read_replicas, 0, 1, MOST_REPLICAS, NULL },
        { "widths", read_widths, AT(widths), 1, MOST_REPLICAS, NULL },
        { "tensor", read_tensor, 0, 1, MOST_TEAM, NULL },
        { "positions", read_choice, AT(positions), 0, 0, "whole divided auto everywhere" },
        { "experts", read_choice, AT(experts), 0, 0, "divided devices auto" },
        { "buckets", read_count, AT(buckets), 1, MOST_OPS, NULL },
        { "schedule", read_schedule_row, AT(schedule), 0, BUILT, schedule_words },
        { "order", read_table, 0, 0, 0, NULL },
        { "warmup", read_choice, AT(warmup), 0, 0, "A B auto" },
        { "transport", read_word, AT(transport), 0, 0, transport_words + 1 },
        { "fuse", read_choice, AT(fuse), 0, 0, "auto none sums most fastest" },
        { "planner", read_word, AT(planner), 0, 0, planner_words + 1 },
        { "recompute", read_recompute, 0, 0, 0, NULL },
        { "offload", read_offload, 0, 0, 0, NULL },
        { "memory_order", read_choice, AT(memory_order), 0, 0, "auto free_time saving_per_second" },
        { "objective", read_choice, AT(objective), 0, 0, "step_time bottleneck throughput" },
        { "mode", read_choice, AT(mode), 0, 0, "train infer" },
        { "constraints", read_constraints, 0, 0, 0, NULL },
        { "cuts", read_cuts, AT(cuts), 0, MOST_OPS, "a list of positions" },
    };
    static const struct { const char *key; size_t at; } places[] = {
        { "replicas", AT(replicas_at) }, { "tensor", AT(tensor_at) }, { "positions", AT(positions_at) },
        { "experts", AT(experts_at) }, { "group", AT(group_at) }, { "waves", AT(waves_at) }, { "map", AT(map_at) },
        { "order", AT(order_at) }, { "mode", AT(mode_at) }, { "cuts", AT(cuts_at) }, { "recompute", AT(recompute_at) },
    };
    PlanSpec *p = &m->plan;
    *p = (PlanSpec){ .chunks = 1, .replicas = 1, .tensor = 1, .buckets = 16, .schedule = "auto", .transport = "local",
                     .planner = "exact", .loc = node ? node->loc : (Loc){ 0, 0, 0 } };
    section(m, node, "plan", fields, COUNT(fields), p);
    for (int i = 0; i < COUNT(places); i++) {
        const Node *value = node_get(node, places[i].key);
        *(Loc *)(void *)((char *)p + places[i].at) = value ? value->loc : p->loc;
    }
    const Node *stages = node_get(node, "stages"), *chunks = node_get(node, "chunks"), *warmup = node_get(node, "warmup");
    widths_end(m, node);
    if (p->replicas > 1)
        replicas_end(m);
    if ((p->replicas_auto || p->widths_auto) && ((m->train.groups & (m->train.groups - 1)) || m->train.groups == 1))
        warn(p->widths_auto ? p->widths_at : p->replicas_at, "plan.%s: auto: %s can be dealt out to one replica; set train."
             "batch.groups to a power of two: another numeric key", p->widths_auto ? "widths" : "replicas",
             count_text((int)m->train.groups, "gradient group"));
    table_end(p, node_get(node, "schedule"));
    const Schedule *schedule = schedule_of(p->schedule);
    if (p->group && !schedule->grouped)
        bad(p->group_at, "delete it", "plan.group is of interleaved schedules; %s has no groups", p->schedule);
    if (p->waves && !schedule->waves)
        bad(p->waves_at, "delete it", "plan.waves is of schedule hanayo; %s has none", p->schedule);
    p->chunks_said = chunks;
    if (schedule->chunks && (!chunks || p->chunks_auto))
        p->chunks = schedule->chunks * (p->waves ? p->waves : 1);
    if (p->map.n)
        map_end(p, chunks ? chunks->loc : (Loc){ 0, 0, 0 });
    if (warmup && p->warmup != WARMUP_A)
        warmup_end(p, warmup->loc);
    tensor_end(m);
    stages_end(m, stages ? stages->loc : p->loc);
    order_end(m);
    widths_check(m);
}
