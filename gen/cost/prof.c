/* SPDX-License-Identifier: Apache-2.0
 *
 * prof.c: a profile as text, accepted whole or refused whole.
 *
 *     dpgen-profile 2
 *     device AMD EPYC, family 26, model 2, stepping 1
 *     compiler gcc 12.2.0
 *     ...
 *     batches 1 2 4
 *     algorithm linear_forward bias=0 rows=256 in=128 out=512 part=0 id=21 tile=18 ...           (GPUs)
 *     compute batch=2 alone=913400 alone_iqr=2100 busy=954100 busy_iqr=3000
 *     op linear_forward bias=0 rows=256 in=128 out=512 alone=31250 alone_iqr=120 busy=40000 busy_iqr=900
 *
 * The idea is FFTW's wisdom (Frigo and Johnson, 2005): measured facts, signed with all that they depend on; one line that
 * differs refuses the file, because half a profile mixes machines.  FFTW hashes its configuration and says no;
 * here every field stands in the open, and the one that differs is named with its line.  A file is written one way only,
 * sorted, so that read and printed it is the same file, and two can be compared with diff.
 *
 * fails   status 5, with file, line, cause and remedy
 */
#include "prof.h"

#include <errno.h>

static const int64_t MOST_NS = 1000000000000, MOST_BATCH = 1000000;     /* their product can be counted */
static const char first[] = "dpgen-profile 2";
static const struct { const char *key; bool machine; } signs[SIGNS] = {
    [SIGN_DEVICE] = {"device", true}, [SIGN_COMPILER] = {"compiler", true}, [SIGN_KERNELS] = {"kernels", true},
    [SIGN_ISA] = {"isa", false}, [SIGN_COMPUTE] = {"compute", false}, [SIGN_THREADS] = {"threads", false},
    [SIGN_STAGES] = {"stages", false}, [SIGN_TRANSPORT] = {"transport", false}, [SIGN_RUNTIME] = {"runtime", true}};
static const char *const kinds[] = {"compute batch=", "copy-in bytes=", "copy-out bytes=", "message bytes=", "op "};
static const char *const times[] = {"busy_iqr", "busy", "alone_iqr", "alone"};     /* from the end of a line */

static const char *const numbers[ALGORITHM_NUMBERS] = {"id", "tile", "stages", "splitk", "reduction", "swizzle", "custom",
    "inner", "cluster", "workspace"};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool whole(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *value = v;
    bool plain = text[0] >= '0' && text[0] <= '9' && (text[0] != '0' || text[1] == '\0');
    return plain && *end == '\0' && errno == 0 && v <= MOST_NS;
}

/* Cut ` key=N` off the end of the line. */
static bool take_last(char *line, const char *key, int64_t *value)
{
    char *at = strrchr(line, ' ');
    size_t n = strlen(key);
    if (!at || strncmp(at + 1, key, n) || at[1 + n] != '=' || !whole(at + 2 + n, value))
        return false;
    *at = '\0';
    return true;
}

const char *profile_again(const Model *m, const char *path)
{
    return strf("measure again: dpgen profile %s%s -o %s, or plan by estimates: --estimate", quote_shell(m->path), m->options,
                quote_shell(path));
}

static NORETURN void bad_line(const Profile *p, int number, const char *why, const char *line)
{
    fail(EXIT_STALE, "%s:%d: %s: '%.60s'; %s", p->path, number, why, line, p->again);
}

static void read_row(Profile *p, int number, char *line)
{
    const char *written = strf("%s", line);
    int64_t value[4];
    bool known = false;
    for (int i = 0; i < 4; i++)
        if (!take_last(line, times[i], &value[i]))
            bad_line(p, number, "not a line of a profile", written);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        known |= !strncmp(line, kinds[i], strlen(kinds[i])) && line[strlen(kinds[i])];
    if (!known)
        bad_line(p, number, "nothing that a profile measures", written);
    if (p->measured.n && strcmp(p->measured.at[p->measured.n - 1].what, line) >= 0)
        bad_line(p, number, strcmp(p->measured.at[p->measured.n - 1].what, line) ? "lines are sorted, and this one is not"
                                                                       : "measured twice", written);
    *PUSH(&p->measured) = (Measured){strf("%s", line), {value[3], value[2]}, {value[1], value[0]}};
}

static void read_algorithm(Profile *p, int number, char *line)
{
    Algorithm a = {0};
    const char *written = strf("%s", line), *part;
    for (int i = ALGORITHM_NUMBERS - 1; i >= 0; i--)
        if (!take_last(line, numbers[i], &a.number[i]) || a.number[i] > INT32_MAX)
            bad_line(p, number, "not an algorithm of a product", written);
    part = strrchr(line, ' ');
    if (!part || strncmp(part, " part=", 6) || part[6] < '0' || part[6] >= '0' + ALGORITHM_PARTS || part[7])
        bad_line(p, number, strf("not an algorithm of part 0 to %d of a call", ALGORITHM_PARTS - 1), written);
    if (p->measured.n || (p->algorithm.n && strcmp(p->algorithm.at[p->algorithm.n - 1].what, line) >= 0))
        bad_line(p, number, "lines are sorted, and this one is not", written);
    a.what = strf("%s", line);
    *PUSH(&p->algorithm) = a;
}

static void read_batches(Profile *p, int number, const char *line)
{
    const char *at = line + (strncmp(line, "batches ", 8) ? strlen(line) : 8);
    while (*at) {
        int64_t b = 0;
        size_t n = strcspn(at, " ");
        if (!whole(strf("%.*s", (int)n, at), &b) || b < 1 || b > MOST_BATCH || (at[n] == ' ' && !at[n + 1])
            || (p->batch.n && b <= p->batch.at[p->batch.n - 1]))
            break;
        *PUSH(&p->batch) = (int)b;
        at += n + (at[n] == ' ');
    }
    if (*at || !p->batch.n)
        bad_line(p, number, "micro-batches, ascending, stand here as 'batches 1 2 4'", line);
}

static void read_line(Profile *p, int number, char *line)
{
    int sign = number - 2;
    if (number == 1 && strcmp(line, first))
        bad_line(p, 1, strf("the first line of a profile is '%s'", first), line);
    if (sign >= 0 && sign < SIGNS) {
        size_t n = strlen(signs[sign].key);
        if (strncmp(line, signs[sign].key, n) || line[n] != ' ' || !line[n + 1])
            bad_line(p, number, strf("'%s ...' is missing here", signs[sign].key), line);
        p->sign[sign] = strf("%s", line + n + 1);
    }
    if (sign == SIGNS)
        read_batches(p, number, line);
    if (sign == SIGNS + 1 && !strncmp(line, "fitted ", 7)) {
        if (!whole(line + 7, &p->fitted) || p->fitted == 0)
            bad_line(p, number, "not a number of calls", line);
        return;
    }
    if (sign > SIGNS)
        (strncmp(line, "algorithm ", 10) ? read_row : read_algorithm)(p, number, line);
}

Profile *profile_parse(const char *path, const char *again)
{
    Profile *p = alloc(sizeof *p);
    size_t n;
    char *text = file_read(path, "dpgen profile MODEL.yaml writes one; --estimate does without", &n);
    p->path = path;
    p->again = again;
    p->hash = sha256_of(text, n);
    int number = 0;
    for (char *line = text, *end; line < text + n; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + n - line));
        if (!end)
            fail(EXIT_STALE, "%s:%d: the end of the line is missing, and perhaps more; %s", path, number + 1, again);
        *end = '\0';
        number++;
        for (const char *c = line; c < end; c++)
            if (*c < 32 || *c > 126)
                bad_line(p, number, strf("column %zu is a byte that no profile has", (size_t)(c - line) + 1), line);
        read_line(p, number, line);
    }
    if (!p->measured.n)
        fail(EXIT_STALE, "%s: ends after line %d, before anything was measured; %s", path, number, again);
    return p;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void profile_sort(Profile *p)
{
    SORT(p->measured.at, p->measured.n, text_order);
    SORT(p->algorithm.at, p->algorithm.n, text_order);
}

static const char *line_of(const Algorithm *a)
{
    const char *text = a->what;
    for (int k = 0; k < ALGORITHM_NUMBERS; k++)
        text = strf("%s %s=%" PRId64, text, numbers[k], a->number[k]);
    return text;
}

void profile_print(FILE *f, const Profile *p)
{
    fprintf(f, "%s\n", first);
    for (int i = 0; i < SIGNS; i++)
        fprintf(f, "%s %s\n", signs[i].key, p->sign[i]);
    fprintf(f, "batches");
    for (int i = 0; i < p->batch.n; i++)
        fprintf(f, " %d", p->batch.at[i]);
    fprintf(f, "\n");
    if (p->fitted)
        fprintf(f, "fitted %" PRId64 "\n", p->fitted);
    for (int i = 0; i < p->algorithm.n; i++)
        fprintf(f, "%s\n", line_of(&p->algorithm.at[i]));
    for (EACH(const Measured, x, p->measured))
        fprintf(f, "%s alone=%" PRId64 " alone_iqr=%" PRId64 " busy=%" PRId64 " busy_iqr=%" PRId64 "\n", x->what,
                x->alone.median, x->alone.quartiles, x->busy.median, x->busy.quartiles);
}

int profile_stages(const Profile *p)
{
    int64_t n = 1;
    return whole(p->sign[SIGN_STAGES], &n) ? (int)n : 1;
}

const Measured *profile_find(const Profile *p, const char *what)
{
    Measured want = {.what = what};
    return p->measured.n ? bsearch(&want, p->measured.at, (size_t)p->measured.n, sizeof want, text_order) : NULL;
}

/* ---- algorithms of products --------------------------------------------------------------------------------------- */

const int64_t *profile_algorithm(const Profile *p, const char *signature, int part)
{
    const Algorithm want = {.what = strf("algorithm %s part=%d", signature, part)}, *a = NULL;
    if (p && p->algorithm.n)
        a = bsearch(&want, p->algorithm.at, (size_t)p->algorithm.n, sizeof want, text_order);
    return a ? a->number : NULL;
}

static bool serves(const Graph *g, const Algorithm *a)
{
    size_t start = strlen("algorithm "), n = (size_t)(strrchr(a->what, ' ') - a->what) - start;
    for (int o = 0; o < g->op.n; o++) {
        const char *call = g->op.at[o].call;
        if (strncmp(a->what + start, call, strlen(call)) == 0) {
            const char *signature = cost_signature(&g->op.at[o]);
            if (strlen(signature) == n && !strncmp(a->what + start, signature, n))
                return true;
        }
    }
    return false;
}

/* Of those that the calls of g have: others do not touch its bits. */
const char *profile_key(const Profile *p, const Graph *g)
{
    char hex[65];
    Digest sum;
    int n = 0;
    digest_start(&sum);
    for (int i = 0; p && i < p->algorithm.n; i++)
        if (serves(g, &p->algorithm.at[i])) {
            const char *line = line_of(&p->algorithm.at[i]);
            digest_add(&sum, line, strlen(line) + 1);
            n++;
        }
    digest_end(&sum, hex);
    return n ? strf(" algorithms=%.16s", hex) : "";
}

/* NVIDIA H200, sm_90, 132 SMs, cuBLAS 13.1.0: the device without its memory, and what the kernels say of cuBLAS. */
const char *profile_measured_on(const Profile *p)
{
    const char *device = p->sign[SIGN_DEVICE], *end = strrchr(device, ','), *library = strstr(p->sign[SIGN_KERNELS], "cuBLAS");
    return strf("%.*s, %.*s", (int)(end ? (size_t)(end - device) : strlen(device)), device,
                library ? (int)strcspn(library, ",") : 0, library ? library : "");
}

/* ---- the signature ----------------------------------------------------------------------------------------------- */

int profile_computing(const Model *m)
{
    const Models teams = team_models(m);
    int most = 0;
    for (int i = 0; i < teams.n; i++) {
        const PlanSpec *p = &teams.at[i]->plan;
        int n = p->stages_max * (p->replicas > 1 ? p->replicas : 1) * p->tensor;
        most = n > most ? n : most;
    }
    return most;
}

void profile_sign(Profile *p, const Model *m, bool machine)
{
    const Device *d = &m->devices.at[0];
    p->sign[SIGN_ISA] = on_gpus(m) ? d->arch ? d->arch : "any" : d->isa;
    p->sign[SIGN_COMPUTE] = compute_word(&m->train);
    if (m->train.blocks > 1)
        p->sign[SIGN_COMPUTE] = strf("%s, sums in %d blocks", compute_word(&m->train), (int)m->train.blocks);
    p->sign[SIGN_THREADS] = strf("%d", d->threads);
    p->sign[SIGN_STAGES] = strf("%d", profile_computing(m));
    p->sign[SIGN_TRANSPORT] = m->plan.transport;
    if (!machine)
        return;
    p->sign[SIGN_RUNTIME] = machine_runtime();
    if (on_gpus(m))          /* profile_sign_by() */
        return;
    p->sign[SIGN_DEVICE] = machine_cpu();
    machine_compiler(m, &p->sign[SIGN_COMPILER], &p->sign[SIGN_KERNELS]);
}

void profile_sign_by(Profile *p, const char *key, const char *value)
{
    for (int i = 0; i < SIGNS; i++)
        if (!strcmp(signs[i].key, key))
            p->sign[i] = value;
}

void profile_signed(const Profile *p)
{
    for (int i = 0; i < SIGNS; i++)
        if (!p->sign[i])
            fail(EXIT_RUN, "the benchmark did not say on what '%s' it measured", signs[i].key);
}

/* Fewer stages than were measured at once lie between alone and busy. */
static bool differs(const Profile *p, const Profile *here, int i)
{
    int64_t had, has;
    if (i == SIGN_STAGES && whole(p->sign[i], &had) && whole(here->sign[i], &has))
        return has > had;
    return here->sign[i] && strcmp(p->sign[i], here->sign[i]) != 0;
}

const char *profile_other_model(const char *path, const Model *m)
{
    Profile *p = profile_parse(path, profile_again(m, path)), here = {0};
    const char *kernels = m->devices.at[0].kernels;
    if (strncmp(p->sign[SIGN_KERNELS], kernels, strlen(kernels)))
        return strf("kernels '%s', and this model has '%s'", p->sign[SIGN_KERNELS], kernels);
    profile_sign(&here, m, false);
    for (int i = 0; i < SIGNS; i++)
        if (!signs[i].machine && differs(p, &here, i))
            return strf("%s '%s', and this model has '%s'", signs[i].key, p->sign[i], here.sign[i]);
    return NULL;
}

Profile *profile_open(const char *path, const Model *m, bool elsewhere)
{
    const char *again = profile_again(m, path);
    Profile *p = profile_parse(path, again), here = {0};
    const char *kernels = m->devices.at[0].kernels;
    profile_sign(&here, m, !elsewhere);
    for (int i = 0; i < SIGNS; i++)
        if (differs(p, &here, i))
            fail(EXIT_STALE, "%s:%d: measured with %s '%s', but this %s has '%s'; %s%s",
                 path, i + 2, signs[i].key, p->sign[i], signs[i].machine ? "machine" : "model", here.sign[i], again,
                 signs[i].machine ? ", or plan for the machine of the profile: --elsewhere" : "");
    if (strncmp(p->sign[SIGN_KERNELS], kernels, strlen(kernels)))
        fail(EXIT_STALE, "%s:%d: measured with kernels '%s', but this model has '%s'; %s", path, SIGN_KERNELS + 2,
             p->sign[SIGN_KERNELS], kernels, again);
    profile_graphs(p, m);
    return p;
}

/* The name that is looked for beside the model: MODEL.DEVICE.profile. */
const char *profile_name(const Model *m)
{
    const char *name = m->devices.at[0].name, *dot = strrchr(m->path, '.');
    size_t n = dot && !strchr(dot, '/') ? (size_t)(dot - m->path) : strlen(m->path), k = strlen(name);
    if (m->devices.n > 1 && k > 2 && !strcmp(name + k - 2, ".0"))
        k -= 2;
    return strf("%.*s.%.*s.profile", (int)n, m->path, (int)k, name);
}
