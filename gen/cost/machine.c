/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c: the things that times on this machine depend on, as one line each: the processor, the compiler, the kernel
 * library, and the sources and flags that dpgen itself brings.
 *
 * Clock rates, governors and other users are not in it: a profile has quartiles because of them.
 */
#include "prof.h"

/* ---- the processor ----------------------------------------------------------------------------------------------- */

/* Lines of /proc/cpuinfo about the first processor, on x86 and on ARM, and how they are shown. */
static const struct { const char *key, *shown; } facts[] = {
    {"model name", ""}, {"cpu family", "family "}, {"model", "model "}, {"stepping", "stepping "},
    {"CPU implementer", "implementer "}, {"CPU part", "part "}, {"CPU variant", "variant "}};
enum { FACTS = sizeof facts / sizeof *facts };

/* The value of `key : value`, blanks cut off; NULL if the line is another. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, key, n))
        return NULL;
    const char *at = line + n + strspn(line + n, " \t");
    if (*at != ':')
        return NULL;
    at += 1 + strspn(at + 1, " \t");
    return strf("%.*s", (int)strcspn(at, "\n"), at);
}

static const char *printable(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < 32 || *c > 126)
            *c = '?';
    return text;
}

const char *machine_cpu(void)
{
    const char *found[FACTS] = {0}, *text = NULL;
    char *line = alloc(4096);
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, 4096, f))
        for (int i = 0; i < FACTS; i++)
            if (!found[i])
                found[i] = value_of(line, facts[i].key);
    if (f)
        fclose(f);
    for (int i = 0; i < FACTS; i++)
        if (found[i])
            text = strf("%s%s%s%s", text ? text : "", text ? ", " : "", facts[i].shown, found[i]);
    return printable(strf("%s", text ? text : "unknown processor"));
}

/* Of the x86-64 psABI: each level needs those before it.  Names as in /proc/cpuinfo. */
static const struct { const char *isa, *flags; } levels[] = {
    {"x86-64", "sse2"}, {"x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"},
    {"x86-64-v3", "abm avx avx2 bmi1 bmi2 f16c fma movbe"}, {"x86-64-v4", "avx512bw avx512cd avx512dq avx512f avx512vl"}};

/* Is each of the words in the list? */
static bool has_words(const char *list, const char *words)
{
    while (*words) {
        size_t n = strcspn(words, " ");
        if (!strstr(list, strf(" %.*s ", (int)n, words)))
            return false;
        words += n + strspn(words + n, " ");
    }
    return true;
}

/* The flags of the first processor, a space before and behind each; empty on other architectures. */
static const char *own_flags(void)
{
    const char *flags = NULL;
    char *line = alloc(16384);
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !flags && fgets(line, 16384, f))
        flags = value_of(line, "flags");
    if (f)
        fclose(f);
    return flags ? strf(" %s ", flags) : "";
}

static const char *level_of(const char *flags)
{
    const char *isa = NULL;
    for (size_t i = 0; i < sizeof levels / sizeof *levels && has_words(flags, levels[i].flags); i++)
        isa = levels[i].isa;
    return isa;
}

const char *machine_isa(void)
{
    return level_of(own_flags());
}

const char *machine_lacks(const char *isa)
{
    const char *flags = own_flags(), *here = level_of(flags), *more = isa + strcspn(isa, "+");
    const char *level = strf("%.*s", (int)(more - isa), isa);
    if (!here || !strcmp(isa, "native"))
        return NULL;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (!has_words(flags, levels[i].flags))
            return here;
        if (!strcmp(levels[i].isa, level))
            break;
    }
    bool bf16 = has_words(flags, "avx512_bf16"), amx = bf16 && has_words(flags, "amx_tile amx_int8 amx_bf16");
    return (!strcmp(more, "+bf16") && !bf16) || (!strcmp(more, "+amx") && !amx) ? here : NULL;
}

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

typedef struct { const char *key, *value; } Macro;

static void take_macro(void *ctx, char *line)
{
    static const char define[] = "#define ";
    size_t n = strcspn(line + (sizeof define - 1 < strlen(line) ? sizeof define - 1 : 0), " ");
    for (Macro *m = ctx; m->key && !strncmp(line, define, sizeof define - 1); m++)
        if (strlen(m->key) == n && !strncmp(line + sizeof define - 1, m->key, n))
            m->value = strf("%s", line + sizeof define - 1 + n + (line[sizeof define - 1 + n] == ' '));
}

void machine_compiler(const Model *m, const char **compiler, const char **kernels)
{
    const Library *k = library_of(&m->devices.at[0]);
    Macro list[] = {{"__clang_major__", 0}, {"__clang_minor__", 0}, {"__clang_patchlevel__", 0}, {"__GNUC__", 0},
        {"__GNUC_MINOR__", 0}, {"__GNUC_PATCHLEVEL__", 0}, {strf("%s_MAJOR", k->version ? k->version : ""), 0},
        {strf("%s_MINOR", k->version ? k->version : ""), 0}, {strf("%s_PATCH", k->version ? k->version : ""), 0}, {0, 0}};
    const char *plain[] = {transport_of(m)->cc, "-E", "-dM", "-x", "c", "/dev/null", NULL};
    const char *with[] = {plain[0], "-E", "-dM", "-x", "c", "-include", k->header, "/dev/null", NULL};
    int status = process_run(k->header ? with : plain, NULL, take_macro, list);
    if (status != 0)
        fail(EXIT_MACHINE, "%s does not work here (status %d)%s", plain[0], status,
             !k->header ? "" : strf(", or the headers of %s are missing: install %s, or use kernels: %s", k->title, k->package,
                                    target_of(&m->devices.at[0])->kernels));
    bool clang = list[0].value;
    const Macro *v = clang ? list : list + 3;
    *compiler = v[0].value ? strf("%s %s.%s.%s", clang ? "clang" : "gcc", v[0].value, v[1].value, v[2].value) : "unknown";
    *kernels = !k->header ? k->name : strf("%s %s.%s.%s", k->name, list[6].value, list[7].value, list[8].value);
}

/* ---- our own ----------------------------------------------------------------------------------------------------- */

const char *machine_runtime(void)
{
    char hex[65];
    Digest sum;
    digest_start(&sum);
    for (const Embedded *e = embedded; e->name; e++)
        if (!strncmp(e->name, "rt/", 3) || !strcmp(e->name, "templates/Makefile") || !strcmp(e->name, "templates/cuda.mk") ||
            !strncmp(e->name, "templates/bench", 15)) {
            digest_add(&sum, e->name, strlen(e->name) + 1);
            digest_add(&sum, e->data, e->n);
        }
    digest_end(&sum, hex);
    return strf("%.16s", hex);
}
