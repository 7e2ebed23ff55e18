/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the command line, checked as a whole before anything is read.  An option without effect on the
 * command is refused.
 */
#include "options.h"
#include "planner.h"

#include <errno.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Commands; without one, a model file and -o. */
enum { GENERATE = 1, CHECK = 2, PLAN = 4, EXPLAIN = 8, COMPARE = 16, PROFILE = 32, PACK = 64, REPORT = 128, METRICS = 256,
    NEW = 512, SCHEDULES = 1024, TOKENS = 2048, IMPORT = 4096, EXPORT = 8192,
    FILES = REPORT | METRICS,       /* written by a job: without a model */
    OWN = PACK | NEW | TOKENS | IMPORT | EXPORT,        /* with a command line of its own */
    PLANS = GENERATE | PLAN | EXPLAIN | COMPARE | SCHEDULES,
    MODELS = PLANS | CHECK | PROFILE };

typedef struct { const char *name; int bit; const char *form, *about; } Verb;
typedef struct { const char *name, *value; int taken; const char *about; } OptionRow;
#define VERB(...) {__VA_ARGS__},
#define OPTION(...)
static const Verb verbs[] = {
#include "options.def"
};
#undef VERB
#undef OPTION
#define VERB(...)
#define OPTION(name, value, commands, takes, about) {name, value, commands, about},
static const OptionRow rows[] = {
#include "options.def"
};
#undef OPTION
#define OPTION(name, value, commands, takes, about) {name, value, takes},
#define FILLS(kind, field) kind, offsetof(Options, field)
#define OF_MODEL TAKEN_ELSEWHERE, 0
#define BY_COMMAND TAKEN_ELSEWHERE, 0
static const Option table[] = {
    {"-o", "DIR or FILE", FILLS(WRITES_FILE, out)},         /* which, its commands say */
#include "options.def"
    {0}
};
enum { VERBS = sizeof verbs / sizeof *verbs, ROWS = sizeof rows / sizeof *rows };

static const char statuses[] =
    "status: 0 done, 1 failed, 2 usage or an unreadable file, 3 the model is wrong, 4 no plan fits,\n"
    "        5 stale profile, 6 nothing can be built or measured on this machine, 70 a bug in dpgen\n";

static NORETURN void misuse(const char *form, const char *what)
{
    fprintf(stderr, "dpgen: ");
    fputs(quote_terminal(strf(form, what)), stderr);
    fprintf(stderr, "\ntry: dpgen --help\n");
    exit(EXIT_USAGE);
}

static void list_schedules(void)
{
    printf("%-21s %s\n", "auto", "1f1b and gpipe are tried, then all synchronous rows but optimal; the fastest is taken");
    for (const Schedule *k = schedules; k->name; k++)
        printf("%-21s %s\n", k->name, k->about);
}

/* An option of the model, or of no one. */
static void take_override(Options *x, const char *option, const char *value)
{
    if (!strcmp(option, "-D"))
        *PUSH(&x->over.define) = value;
    else if (!strcmp(option, "--set"))
        *PUSH(&x->over.set) = value;
    else if (override_path(option))
        *PUSH(&x->over.set) = strf("%s=%s", option, value);
    else {
        Strs names = {0};
        for (int i = 0; i < ROWS; i++)
            *PUSH(&names) = rows[i].name;
        const char *near = nearest(option, names.at, names.n);
        misuse(near ? strf("unknown option %%s; did you mean %s?", near) : "unknown option %s", option);
    }
    if (!option_is_value(value))
        misuse("%s needs a value", option);
}

static int verb_bit(const char *word)
{
    for (int i = 0; word && *word && i < VERBS; i++)
        if (!strcmp(word, verbs[i].name))
            return verbs[i].bit;
    return 0;
}

/* A model file, unless no file is called so and a command nearly is. */
static void check_verb(const char *word)
{
    const char *names[VERBS], *near;
    for (int i = 0; i < VERBS; i++)
        names[i] = verbs[i].name;
    near = strpbrk(word, "./") || access(word, F_OK) == 0 ? NULL : nearest(word, names, VERBS);
    if (near)
        misuse(strf("%%s is neither a command nor a file; did you mean dpgen %s?", near), word);
}

static bool sets_planner(const Options *x)
{
    for (int i = 0; i < x->over.set.n; i++)
        if (!strncmp(x->over.set.at[i], "--planner=", 10))
            return true;
    return false;
}

/* The commands that take it; an option of the plan is taken where --set is. */
static int taken_by(const char *option)
{
    int taken = 0;
    for (int i = 0; i < ROWS; i++)
        taken |= strcmp(option, rows[i].name) ? 0 : rows[i].taken;
    return taken ? taken : taken_by("--set");
}

/* NAME.h, NAME.o and NAME_main stand beside the files of the folder. */
static void check_prefix(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!strchr(C_WORD, *c) || strchr("0123456789", *name))
            misuse("--prefix %s is not a C identifier", name);
    bool taken = !strncmp(name, "stage", 5) || !strcmp(name, "train") || !strcmp(name, "launch") || !strcmp(name, "kernels") ||
                 !strcmp(name, "Makefile");         /* make would link one from Makefile.o */
    const char *header = strf("/%s.h", name);
    for (const Embedded *e = embedded; e->name && !taken; e++)
        taken = strrchr(e->name, '/') && !strcmp(strrchr(e->name, '/'), header);
    if (taken)
        misuse("--prefix %s: a file or a name of the folder is called so; try another name", name);
}

static void check_options(const Options *x)
{
    for (const char *c = x->dump; c && *c; c++) {
        bool known = false;
        for (int i = 0; dumps[i].pass; i++)
            known |= dumps[i].letter == *c;
        if (!known)
            misuse("-d %s: there is no such pass; -d ? lists them", x->dump);
    }
    if (verb_bit(x->verb) == PACK)
        misuse("%s", "pack comes first: dpgen pack FILE.csv");
    if (!x->file && verb_bit(x->verb) & FILES)
        misuse(verb_bit(x->verb) == REPORT ? "%s" : "dpgen metrics of which log? out/train --log FILE writes one",
               "dpgen report of which folder? one that dpgen MODEL.yaml -o DIR wrote");
    if (verb_bit(x->verb) == TOKENS)
        misuse("%s", "tokens comes first: dpgen tokens FILE");
    if (verb_bit(x->verb) & (NEW | IMPORT | EXPORT))
        misuse("%s comes first, with a command line of its own; see dpgen --help", x->verb);
    if (!x->file && !(x->from && (verb_bit(x->verb) & (CHECK | PLAN | COMPARE | SCHEDULES | EXPLAIN))))
        misuse("%s", "no model file");
    if (verb_bit(x->verb) == EXPLAIN && !x->what)
        misuse("explain needs a name: dpgen explain %s NAME, of an operator, a tensor, a parameter, a block ...",
               x->file ? x->file : "--from FILE");
    /* An option that a command would ignore is a mistake in the command line. */
    int verb = x->verb ? verb_bit(x->verb) : GENERATE;
    const struct { const char *option; bool given, unless; } uses[] = {
        {"-o", x->out, false}, {"--prefix", x->prefix, false}, {"--library", x->library, x->dump}, {"--json", x->json, x->dump},
        {"--profile", x->profile, x->estimate}, {"--estimate", x->estimate, false},
        {"--elsewhere", x->elsewhere, x->estimate}, {"--pace", x->pace, false}, {"--parameters", x->parameters, x->dump},
        {"--no-verify", x->unproved, x->dump}, {"--quick", x->quick, false}, {"--planners", x->planners, false},
        {"-d", x->dump, false}, {"--fit", x->fit, false},
        {"-D", x->over.define.n > 0, false}, {"--devices", x->devices, false},
        {"an option of the plan", x->over.set.n > 0, false}, {"--trace", x->trace, false},
        {"--tensorboard", x->tensorboard, false}, {"--csv", x->csv, false}, {"--planner", sets_planner(x), false},
        {"--from", x->from, false}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        bool taken = taken_by(uses[i].option) & verb;
        if (uses[i].given && (!taken || uses[i].unless))
            misuse(strf("dpgen %s has no use for %%s%s%s", x->verb ? x->verb : "MODEL.yaml",
                        taken && x->dump ? " with -d" : "", taken && x->estimate ? " with --estimate" : ""), uses[i].option);
    }
    if (verb_bit(x->verb) == REPORT && !x->trace)
        misuse("of which run? dpgen report %s --trace FILE; out/train --trace FILE writes one", x->file);
    if (verb_bit(x->verb) == METRICS && !x->tensorboard)
        misuse("where to? dpgen metrics %s --tensorboard DIR", x->file);
    if (x->csv && x->json)
        misuse("%s", "--csv and --json are two forms of one output");
    bool measures = x->verb ? verb_bit(x->verb) == PROFILE && !x->out : !x->estimate && !x->profile && !x->dump && !x->from;
    if (x->file == file_stdin && measures)
        misuse("%s", "no profile stands beside the standard input: name one (-o of dpgen profile, --profile), or --estimate");
    bool lacks = !x->verb && !x->out && !x->dump;
    if (lacks && x->file != file_stdin && !strpbrk(x->file, "./") && access(x->file, F_OK) != 0)
        misuse("%s is neither a command nor a file", x->file);
    if (lacks)
        misuse("no folder to write: dpgen %s -o DIR", x->file);
    if (x->prefix)
        check_prefix(x->prefix);
}

void options_end(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        fail(EXIT_RUN, "cannot write the standard output: %s", strerror(errno));
    exit(status);
}

/* ---- --help -------------------------------------------------------------------------------------------------------- */

/* `left`, and in a column behind it the words of a text, in lines of at most WIDE. */
static void print_entry(const char *left, const char *text)
{
    enum { COLUMN = 28, WIDE = 100 };
    int at = printf("%-*s", COLUMN - 1, left);
    for (int n; n = (int)strcspn(text, " "), n > 0; text += n + (text[n] == ' ')) {
        if (at + 1 + n > WIDE)
            at = printf("\n%*s", COLUMN - 1, "") - 1;
        at += printf(" %.*s", n, text);
    }
    printf("\n");
}

/* All commands, and the options of none; or one command with its own. */
static void help(const Verb *of)
{
    for (int i = 0; i < VERBS; i++)
        if (!of || of == &verbs[i])
            print_entry(strf("dpgen %s%s%s", verbs[i].name, *verbs[i].name ? " " : "", verbs[i].form), verbs[i].about);
    printf(of ? "\n" : "\ndpgen COMMAND --help lists the options of that command; without one they are\n");
    int verb = of ? of->bit : GENERATE;
    for (int i = 0; i < ROWS; i++) {
        const OptionRow *r = &rows[i];
        const char *text = r->about;
        for (const Schedule *k = schedules; !strcmp(r->name, "--schedule") && k->name; k++)
            text = strf("%s%s %s", text, k == schedules ? "" : ",", k->name);
        if (r->taken & verb)
            print_entry(strf("  %s%s%s", r->name, *r->value ? " " : "", r->value), text);
    }
    printf("  -h, --help, --version\n\n%s", statuses);
}

/* The first word that is a command. */
static const Verb *verb_among(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (int k = 0; k < VERBS; k++)
            if (*argv[i] && !strcmp(argv[i], verbs[k].name))
                return &verbs[k];
    return NULL;
}

void options_answer(int argc, char **argv, const char *commit)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(word, "--help") || !strcmp(word, "-h") || (i == 1 && !strcmp(word, "help") && access(word, F_OK) != 0))
            help(verb_among(argc, argv));
        else if (!strcmp(word, "--version"))
            printf("dpgen %s\n%s%s%slicence Apache-2.0; what it writes is yours\nlibyaml %s\ncompiler %s\n", DPGEN_VERSION,
                   *commit ? "commit " : "", commit, *commit ? "\n" : "", load_library(), COMPILER);
        else if (!strcmp(word, "-d") && !strcmp(next, "?"))
            for (int k = 0; dumps[k].pass; k++)
                printf("%c  %-6s %s\n", dumps[k].letter, dumps[k].pass, dumps[k].what);
        else if (!strcmp(word, "--planner") && !strcmp(next, "?"))
            for (const Planner *k = planners; k->name; k++)
                printf("%-21s %s; %s\n", k->name, k->space, k->source);
        else if (!strcmp(word, "--schedule") && !strcmp(next, "?"))
            list_schedules();
        else if (!strcmp(word, "--devices") && !strcmp(next, "?"))
            list_devices(stdout);
        else
            continue;
        options_end(0);
    }
}

Options options(int argc, char **argv)
{
    Options x = {0};
    for (int i = 1, used; i < argc; i++) {
        const char *word = argv[i];
        if ((used = option_take(table, &x, argv + i)))
            i += used - 1;
        else if (word[0] == '-' && word[1] == '-' && strchr(word, '='))
            take_override(&x, strf("%.*s", (int)strcspn(word, "="), word), strchr(word, '=') + 1);
        else if (word[0] == '-' && word[1])
            take_override(&x, word, ++i < argc ? argv[i] : NULL);
        else if (!x.verb && !x.file && verb_bit(word))
            x.verb = word;
        else if (!x.file)
            check_verb(x.file = strcmp(option_word("the model file", word), "-") ? word : file_stdin);
        else if (!x.what && verb_bit(x.verb) == EXPLAIN)
            x.what = word;
        else if (!x.next && verb_bit(x.verb) == EXPLAIN)
            x.next = word;
        else
            misuse("one model file at a time; %s is one too many", word);
    }
    if (verb_bit(x.verb) == EXPLAIN && x.from && x.file && !x.next && access(x.file, F_OK) != 0) {
        x.next = x.what;                /* without a model file its place is that of a name */
        x.what = x.file;
        x.file = NULL;
    }
    check_options(&x);
    return x;
}

const char *options_model(const Options *x)
{
    const char *text = "";
    for (int i = 0; i < x->over.define.n; i++)
        text = strf("%s -D %s", text, quote_shell(x->over.define.at[i]));
    for (int i = 0; i < x->over.set.n; i++) {
        const char *set = x->over.set.at[i];
        text = strf("%s%s %s", text, strncmp(set, "--", 2) ? " --set" : "", quote_shell(set));
    }
    return x->devices ? strf("%s --devices %s", text, quote_shell(x->devices)) : text;
}
