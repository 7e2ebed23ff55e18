/* SPDX-License-Identifier: Apache-2.0
 *
 * mkcall.c: host tool, prints the stubs of each call in C.  Which calls there are, ops.def says; what type each word has,
 * rt.h says.  So a new row, or a new operand, needs no change here.  Calls that do the work of two stand in verify/calls.def.
 *
 *     mkcall rt/rt.h paced    kernels of paced jobs: the calls, and nothing in them
 *     mkcall rt/rt.h call     how the interpreter calls each kernel
 *     mkcall rt/rt.h hooks    rt/hooks.h: what a stage's source calls in place of each kernel
 *
 * The interpreter has a call's name and a list of words.  A word is an address, an integer or a float; one adaptor a call
 * takes each from the right member of a union.  A library that prepares nothing has no open_CALL, and takes the empty one.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OP(name, in, par, out, axes, keys, class, shape, f, ff, i, fi, w, fw) f, i, w,
static const char *const calls[] = {
#include "gen/ops.def"
};
#undef OP
#define CALL(...)
#define LANES(...)
#define SUM(...)
#define COPY(...)
#define OTHER(...)
#define TEAM(...)
#define JOINED(name, ...) #name "(",
static const char *const joined[] = {
#include "verify/calls.def"
};
enum { JOINS = sizeof joined / sizeof *joined };
enum { CALLS = sizeof calls / sizeof *calls, MOST = 512, NAME = 64 };

static char header[1 << 16];
static char name[MOST][NAME];
static int names;

static void stop(const char *what, const char *of)
{
    fprintf(stderr, "mkcall: %s %s\n", what, of);
    exit(1);
}

static void add(const char *text, size_t n)
{
    char word[NAME];
    if (n >= NAME || names == MOST)
        stop("too long or too many:", text);
    memcpy(word, text, n);
    word[n] = 0;
    for (int i = 0; i < names; i++)
        if (!strcmp(name[i], word))
            return;
    strcpy(name[names++], word);
}

/* "da = dy; f(db, dy, n)": every word before a parenthesis. */
static void add_calls(const char *text)
{
    for (const char *p = text; (p = strchr(p, '(')); p++) {
        const char *from = p;
        while (from > text && (isalnum((unsigned char)from[-1]) || from[-1] == '_'))
            from--;
        add(from, (size_t)(p - from));
    }
}

/* Behind the name in "void PREFIXCALL(Stage *st, ..."; NULL: not declared. */
static const char *parameters(const char *prefix, const char *call)
{
    static const char begin[] = "\nvoid ";
    size_t n = strlen(prefix), k = strlen(call);
    for (const char *p = header; (p = strstr(p, begin));) {
        p += strlen(begin);
        if (!strncmp(p, prefix, n) && !strncmp(p + n, call, k) && p[n + k] == '(')
            return p + n + k;
    }
    return NULL;
}

static void print_stub(const char *before, const char *prefix, const char *call)
{
    const char *p = parameters(prefix, call);
    printf("%svoid %s%s%.*s {}\n", before, prefix, call, (int)strcspn(p, ";"), p);
}

static void print_adaptor(const char *prefix, const char *call)
{
    const char *p = parameters(prefix, call);
    printf("static void call_%s%s(Stage *st, const Word *a)\n{\n    (void)a;\n    %s%s(st", prefix, call, prefix, call);
    p += strcspn(p, ",)");
    for (int i = 0; *p == ','; i++) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",)");
        char member = memchr(p, '*', n) ? 'p' : !strncmp(p, "float", 5) ? 'f' : 'i';
        printf(", %sa[%d].%c", member == 'i' && !strncmp(p, "int ", 4) ? "(int)" : "", i, member);
        p += n;
    }
    printf(");\n}\n");
}

static void read_header(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(header, 1, sizeof header, f) : 0;
    if (!n || n == sizeof header)
        stop("cannot read", path);
    fclose(f);
}

static void print_paced(void)
{
    printf("/* SPDX-" "License-Identifier: Apache-2.0\n *\n"
           " * Calls of rt.h, with nothing in them.  Made from gen/ops.def by tools/mkcall.c of dpgen.\n */\n"
           "#include \"../../rt.h\"\n\n"
           "#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n\n");
    for (int i = 0; i < names; i++)
        print_stub("", "", name[i]);
}

static void print_calls(void)
{
    printf("#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n");
    for (int i = 0; i < names; i++) {
        print_adaptor("", name[i]);
        if (!parameters("open_", name[i]))
            continue;
        print_stub("__attribute__((weak)) ", "open_", name[i]);
        print_adaptor("open_", name[i]);
    }
    printf("static const struct { const char *name; void (*call)(Stage *, const Word *), (*open)(Stage *, const Word *); } "
           "kernels[] = {\n");
    for (int i = 0; i < names; i++) {
        printf("    {\"%s\", call_%s, ", name[i], name[i]);
        printf(parameters("open_", name[i]) ? "call_open_%s},\n" : "0},\n", name[i]);
    }
    printf("};\n");
}

/* One parameter after the other, in lines of at most 120 columns; form: of a parameter, of its name, or of a Given. */
static void print_each(int at, const char *p, int form)
{
    int first = 1;
    for (p += strcspn(p, ",)"); *p == ',';) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",)"), from = n;
        while (isalnum((unsigned char)p[from - 1]) || p[from - 1] == '_')
            from--;
        char member = memchr(p, '*', n) ? 'p' : !strncmp(p, "float", 5) ? 'f' : 'i', text[2 * NAME];
        int whole = form == 0, length = (int)(whole ? n : n - from);
        const char *word = whole ? p : p + from;
        if (form == 2)
            snprintf(text, sizeof text, "{.%c = %.*s}", member, length, word);
        else
            snprintf(text, sizeof text, "%.*s", length, word);
        int breaks = at + (int)strlen(text) + 3 > 120;
        at = breaks ? printf("\n      ") - 1 : at + printf(first ? "" : " ");
        at += printf("%s%s", text, p[n] == ',' ? "," : "");
        first = 0;
        p += n;
    }
}

static void print_hook(const char *call)
{
    const char *p = parameters("", call);
    print_each(printf("HOOK(%s, (", call), p, 0);
    printf("),\n     (st, ");
    print_each(10, p, 1);
    printf("),\n     ");
    print_each(5, p, 2);
    printf(")\n\n");
}

static void print_hooks(void)
{
    printf("/* SPDX-" "License-Identifier: Apache-2.0\n *\n"
           " * hooks.h: a stage's source calls these in place of the calls of rt.h, so that whoever wants to, sees each call\n"
           " * and the routine that makes it: rt/selftest.c, rt/cuda/ranges.c.  Made from gen/ops.def by tools/mkcall.c of\n"
           " * dpgen.\n */\n"
           "#ifndef HOOKS_H\n#define HOOKS_H\n\n"
           "#define HOOKED_LIST(...) __VA_ARGS__\n"
           "#define HOOK(call, parameters, arguments, ...) \\\n"
           "static inline void hooked_##call(Stage *st, const char *routine_, HOOKED_LIST parameters) \\\n"
           "{ \\\n"
           "    const Given of_[] = {__VA_ARGS__}; \\\n"
           "    if (st->hook) \\\n"
           "        st->hook(st, CALL_BEGINS, routine_, #call #parameters, of_); \\\n"
           "    call arguments; \\\n"
           "    if (st->hook) \\\n"
           "        st->hook(st, CALL_ENDS, routine_, #call #parameters, of_); \\\n"
           "}\n\n");
    for (int i = 0; i < names; i++)
        print_hook(name[i]);
    for (int i = 0; i < names; i++)
        printf("#define %s(st, ...) hooked_%s(st, __func__, __VA_ARGS__)\n", name[i], name[i]);
    printf("#endif\n");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        stop("usage:", "mkcall rt.h paced|call|hooks");
    read_header(argv[1]);
    for (int i = 0; i < CALLS; i++)
        add_calls(calls[i]);
    for (int i = 0; i < JOINS && !strcmp(argv[2], "hooks"); i++)
        add_calls(joined[i]);
    for (int i = 0; i < names; i++)
        if (!parameters("", name[i]))
            stop("rt.h does not declare", name[i]);
    if (!strcmp(argv[2], "paced"))
        print_paced();
    else if (!strcmp(argv[2], "hooks"))
        print_hooks();
    else
        print_calls();
    return 0;
}
