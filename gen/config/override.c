/* SPDX-License-Identifier: Apache-2.0
 *
 * override.c: -D name=value and --set path=value change the tree before anybody reads it.
 *
 * So an overridden value passes exactly the checks that a written one passes, and a mistake in it is shown with the
 * option's own text.  A path is keys and list positions with dots between, * for every position; maps that are missing
 * on the way are made, and keys that nobody knows are found by the section that reads them.
 *
 * --stages 4 and a few others are short for a --set, and come here as --stages=4.  --devices FILE takes the sections that
 * describe machines from another file.
 *
 * needs   Node tree, options in the order given        keeps   every node that no option names
 * fails   with bad() at the option; a missing '=' is wrong usage
 */
#include "schema.h"
#include <unistd.h>

static size_t split(const char *option, const char *text)
{
    const char *equal = strchr(text, '=');
    if (!equal || equal == text)
        fail(EXIT_USAGE, "%s %s: write %s %s=VALUE", option, text, option, option[1] == 'D' ? "NAME" : "PATH");
    return (size_t)(equal - text);
}

static void define(Node *root, const char *text)
{
    size_t n = split("-D", text);
    const char *name = strf("%.*s", (int)n, text), *known[64];
    Node *value = load_option("-D", text, n + 1), *dims = node_get(node_get(root, "model"), "dims");
    Loc at = { value->loc.file, 1, 1 };
    int count = 0;
    for (int i = 0; dims && dims->kind == MAP && i < dims->n; i++) {
        if (!strcmp(dims->key[i]->text, name)) {
            dims->at[i] = value;
            return;
        }
        if (count < COUNT(known))
            known[count++] = dims->key[i]->text;
    }
    bad(at, !strcmp(name, "B") ? "B is the micro-batch: --set train.batch.micro=..."
            : did_you_mean(name, known, count, "-D sets what stands in model.dims"),
        "the model has no dim '%s'", name);
}

/* The place of one step of a path; NULL, and a mistake named, if there cannot be one. */
static Node **child(Node *parent, const char *step, Loc at)
{
    if (parent->kind == LIST) {
        char *end;
        long i = strtol(step, &end, 10);
        if (*end || end == step || i < 0 || i >= parent->n) {
            bad(at, NULL, "'%s' is no position in a list of %d; the first is 0", step, parent->n);
            return NULL;
        }
        return &parent->at[i];
    }
    if (parent->kind == SCALAR && *parent->text) {
        bad(at, NULL, "'%s' cannot be set: what stands before it is '%s', not a map", step, parent->text);
        return NULL;
    }
    parent->kind = MAP;         /* `train:` with nothing behind it */
    for (int i = 0; i < parent->n; i++)
        if (!strcmp(parent->key[i]->text, step))
            return &parent->at[i];
    Node **key = alloc(((size_t)parent->n + 1) * sizeof *key), **value = alloc(((size_t)parent->n + 1) * sizeof *value);
    for (int i = 0; i < parent->n; i++) {
        key[i] = parent->key[i];
        value[i] = parent->at[i];
    }
    Node *made = key[parent->n] = alloc(sizeof *made);
    *made = (Node){ .kind = SCALAR, .loc = at, .text = step };
    parent->key = key;
    parent->at = value;
    return &value[parent->n++];
}

/* Put value at the rest of the path, from text[i] on; `*` is every element of a list. */
static void place(Node **to, const char *text, size_t i, size_t n, Node *value)
{
    if (i >= n) {
        *to = value;
        return;
    }
    size_t length = strcspn(text + i, ".=");
    Loc at = { value->loc.file, 1, (int)i + 1 };
    if (!length) {
        bad(at, "write a path such as train.steps", "an empty step in a path");
        return;
    }
    if (!*to) {
        *to = alloc(sizeof **to);
        **to = (Node){ .kind = MAP, .loc = at };
    }
    if (length == 1 && text[i] == '*' && (*to)->kind == LIST) {
        for (int k = 0; k < (*to)->n; k++)
            place(&(*to)->at[k], text, i + 2, n, value);
        return;
    }
    Node **next = child(*to, strf("%.*s", (int)length, text + i), at);
    if (next)
        place(next, text, i + length + 1, n, value);
}

const char *override_path(const char *option)
{
    static const struct { const char *option, *path; } shorts[] = {
        { "--stages", "plan.stages" }, { "--schedule", "plan.schedule" }, { "--recompute", "plan.recompute" },
        { "--offload", "plan.offload" }, { "--limit", "devices.*.memory" }, { "--cuts", "plan.cuts" },
        { "--map", "plan.map" }, { "--replicas", "plan.replicas" }, { "--widths", "plan.widths" },
        { "--link", "links.cpu-cpu" },
        { "--objective", "plan.objective" }, { "--device-order", "devices.order" }, { "--planner", "plan.planner" },
        { "--fuse", "plan.fuse" }, { "--order", "plan.order" }, { "--mode", "plan.mode" } };
    int i = INDEX_OF(shorts, COUNT(shorts), option);
    return i < 0 ? NULL : shorts[i].path;
}

/* devices is a list or {order: free, list: [...]}, and paths name its entries as if it were the list. */
static const char *through_list(Node *root, const char *path)
{
    static const char start[] = "devices.", order[] = "devices.order";
    Node *d = node_get(root, "devices");
    size_t n = strcspn(path, "=");
    bool ordered = n == strlen(order) && !strncmp(path, order, n);
    if (!d || strncmp(path, start, strlen(start)))
        return path;
    if (ordered && d->kind == LIST) {
        Node *list = COPY(d);
        *d = (Node){ .kind = MAP, .loc = d->loc };
        *child(d, "list", d->loc) = list;
    }
    return !ordered && d->kind == MAP && node_get(d, "list") ? strf("devices.list.%s", path + strlen(start)) : path;
}

/* --stages=4: the value of an option that is short for a --set. */
static void set_short(Node *root, const char *text)
{
    size_t n = strcspn(text, "=");
    const char *option = strf("%.*s", (int)n, text), *path = override_path(option), *value = text + n + 1;
    if (!path)
        die("%s is short for nothing", option);
    if (!strcmp(option, "--cuts") || !strcmp(option, "--map") || (!strcmp(option, "--widths") && strcmp(value, "auto")))
        value = strf("[%s]", value);
    path = through_list(root, path);
    place(&root, path, 0, strlen(path), load_option(option, value, 0));
}

static void set(Node *root, const char *text)
{
    if (*text == '-') {
        set_short(root, text);
        return;
    }
    size_t n = split("--set", text);
    Node *value = load_option("--set", text, n + 1);
    const char *path = through_list(root, text);
    place(&root, path, 0, strcspn(path, "="), value);
}

void override(Node *root, const Overrides *over)
{
    if (!over || root->kind != MAP)
        return;
    for (int i = 0; i < over->set.n; i++)
        set(root, over->set.at[i]);
    for (int i = 0; i < over->define.n; i++)
        define(root, over->define.at[i]);
}

static void drop(Node *map, const char *key)
{
    int n = 0;
    for (int i = 0; i < map->n; i++)
        if (strcmp(map->key[i]->text, key)) {
            map->key[n] = map->key[i];
            map->at[n++] = map->at[i];
        }
    map->n = n;
}

static const char device_folder[] = "devices/", device_end[] = ".yaml";

/* The name of a file of devices/, without folder and end; NULL: it is another file. */
static const char *device_name(const Embedded *e)
{
    size_t from = sizeof device_folder - 1, n = strlen(e->name);
    if (strncmp(e->name, device_folder, from))
        return NULL;
    return strf("%.*s", (int)(n - from - (sizeof device_end - 1)), e->name + from);
}

void list_devices(FILE *f)
{
    for (const Embedded *e = embedded; e->name; e++)
        if (device_name(e))
            fprintf(f, "%s\n", device_name(e));
}

/* Names that begin so, else the nearest one, else all: `a100` is nearer to `h100` than to both kinds of it. */
static NORETURN void no_devices(const char *name, const Strs *names)
{
    const char *list = NULL, *near = nearest(name, names->at, names->n), *all = NULL;
    for (int i = 0; i < names->n; i++) {
        all = all ? strf("%s %s", all, names->at[i]) : names->at[i];
        if (!strncmp(names->at[i], name, strlen(name)))
            list = list ? strf("%s or %s", list, names->at[i]) : names->at[i];
    }
    list = list ? list : near;
    fail(EXIT_USAGE, "--devices %s: no such file, and no such name; %s%s%s", name, list ? "did you mean " : "the names are ",
         list ? list : all, list ? "?" : "");
}

/* A file, or the name of one that dpgen carries inside it. */
static Node *load_devices(const char *path)
{
    Strs names = {0};
    if (strchr(path, '/') || access(path, F_OK) == 0)
        return load(path);
    for (const Embedded *e = embedded; e->name; e++)
        if (device_name(e)) {
            if (!strcmp(device_name(e), path))
                return load_text(e->name, e->data, e->n);
            *PUSH(&names) = device_name(e);
        }
    if (!strchr(path, '.'))
        no_devices(path, &names);
    return load(path);
}

/* Links name devices, so they come and go together. */
void override_devices(Node *root, const char *path)
{
    static const char *const parts[] = { "devices", "hosts", "links" };
    Node *with = load_devices(path), *list = with->kind == MAP ? node_get(with, "devices") : with;
    if (!list)
        err(with->loc, NULL, "no list of devices, and no key 'devices'");
    for (int i = 0; i < COUNT(parts) && root->kind == MAP; i++) {
        Node *part = i == 0 ? list : node_get(with, parts[i]);
        drop(root, parts[i]);
        if (part)
            *child(root, parts[i], part->loc) = part;
    }
}
