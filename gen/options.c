/* SPDX-License-Identifier: Apache-2.0
 *
 * options.c: the command line, checked as a whole before anything is read.  An option without effect on the
 * command is refused.
 */
#include "options.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/option.h"
#include "base/quote.h"
#include "planner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char usage[] =
    "dpgen MODEL.yaml -o DIR     plan the training job and write it to DIR as C; - is the standard input\n"
    "dpgen check MODEL.yaml      operators, parameters, bytes, FLOP; --parameters: the tensors of its published weights\n"
    "dpgen plan MODEL.yaml       the plan, and the step of each neighbouring cut; --json as data\n"
    "dpgen explain MODEL.yaml X  why X is in its place, and is kept, recomputed or moved. X is an operator, a tensor,\n"
    "                            a parameter, an input, a gradient, a block or the number of a stage\n"
    "dpgen explain MODEL.yaml A B\n"
    "                            why there is a cut between operators A and B, or none\n"
    "dpgen compare MODEL.yaml    every planner side by side; --json as data, -o FILE.html as a picture\n"
    "dpgen schedules MODEL.yaml  every synchronous schedule side by side; --json as data, -o FILE.svg draws the lists of the\n"
    "                            one that plan.schedule names\n"
    "dpgen pack FILE.csv         addresses for a published packing instance; -o OUT.csv, --capacity BYTES\n"
    "dpgen tokens FILE...        texts to a file of tokens, -o OUT.bin, by --tokenizer FILE.json; --end TOKEN behind each\n"
    "dpgen report DIR            a page with a measured step beside the predicted one: --trace FILE of the job;\n"
    "                            -o FILE replaces DIR/measured.html\n"
    "dpgen metrics LOG           the log of a job for TensorBoard: --tensorboard DIR\n"
    "dpgen new [NAME]            write NAME.yaml, a small commented model to start from\n"
    "dpgen import DIR            the model file of a published model, from the config.json of DIR: -o MODEL.yaml\n"
    "dpgen import FILE           the model file of a graph, .onnx or .pt2, and its weights beside it; --loss cross-entropy\n"
    "                            or mse\n"
    "dpgen export CHECKPOINT     its parameters as published weights: --hf DIR; --shard 5GB, --like DIR of a published model\n"
    "dpgen profile MODEL.yaml    measure its calls on this machine; -o FILE replaces MODEL.DEVICE.profile\n"
    "\n";
static const char usage_options[] =         /* a string of C99 has 4095 characters */
    "  -o DIR                    the folder to write; it appears whole or not at all\n"
    "  -D NAME=VALUE             set a dim of the model\n"
    "  --set PATH=VALUE          set any value, such as train.steps=100\n"
    "  --stages N                plan.stages\n"
    "  --replicas N              plan.replicas: copies of the whole pipeline\n"
    "  --schedule NAME           plan.schedule: auto"
#define SCHEDULE(word, ...) ", " word
#define LATER(word)
#include "schedules.def"
    "\n"
    "  --order FILE              plan.order: the lists of a table with a row a device and cells such as 0F0, 1I2, 1W2, 0B3\n"
    "  --csv NAME                schedules: write that one as such a table\n"
    "  --recompute WHAT          plan.recompute: none, full, auto or a list of operators\n"
    "  --offload WHAT            plan.offload: none, auto or a list of operators\n"
    "  --limit BYTES             devices.*.memory, such as 8GiB\n"
    "  --fuse none               plan.fuse: every operator is its own call; the bits are those of --fuse auto\n"
    "  --fuse sums               only additions are joined; --fuse auto tries this too where memory is short\n"
    "  --fuse most               on GPUs: a Gelu between two Linear goes into their products; other bits\n"
    "  --fuse fastest            auto, none, sums or most: the one with the fastest plan\n"
    "  --cuts A,B,...            last forward operator of each chunk but the last, counted from 0\n"
    "  --map A,B,...             the device of each chunk, such as 0,1,1,0\n"
    "  --device-order free       devices.order: dpgen chooses the device of each stage\n"
    "  --devices FILE            devices, links and hosts of this file, or of a name that --devices ? lists\n"
    "  --pace                    a dry run: devices wait for their planned time and compute nothing\n"
    "  --prefix NAME             an object with NAME_main() instead of a program\n"
    "  --profile FILE            measured times of this file instead of MODEL.DEVICE.profile\n"
    "  --elsewhere               plan for the machine of the profile, not for this one\n"
    "  --estimate                estimated times, from the figures of devices\n"
    "  --from FILE               start from a graph (-d f) or a plan (-d a) in text form, or from a profiled graph\n"
    "                            of another system; plan, compare and explain need no model file then\n"
    "  --link RATE               between cpu devices, such as 1GB/s\n"
    "  --planner NAME[:VARIANT]  plan.planner: exact, or the planner of another system; --planner ? lists them\n"
    "  --objective WHAT          step_time, or bottleneck: the longest stage or transfer, for graphs of other systems\n"
    "  --planners A,B,...        compare only these\n"
    "  --quick                   compare without the search for the largest micro-batch\n"
    "  -d LETTERS                print the state after these passes and write nothing; -d ? lists them\n"
    "  -h, --help, --version\n"
    "\n"
    "status: 0 done, 1 failed, 2 usage or an unreadable file, 3 the model is wrong, 4 no plan fits, 5 stale profile,\n"
    "        6 nothing can be built or measured on this machine, 70 a bug in dpgen\n";

static NORETURN void misuse(const char *form, const char *what)
{
    fprintf(stderr, "dpgen: ");
    fputs(quote_terminal(strf(form, what)), stderr);
    fprintf(stderr, "\ntry: dpgen --help\n");
    exit(EXIT_USAGE);
}

static void list_dumps(void)
{
    for (int i = 0; dumps[i].pass; i++)
        printf("%c  %-6s %s\n", dumps[i].letter, dumps[i].pass, dumps[i].what);
}

static void list_planners(void)
{
    for (const Planner *k = planners; k->name; k++)
        printf("%-21s %s; %s\n", k->name, k->space, k->source);
}

static void list_schedules(void)
{
    printf("%-21s %s\n", "auto", "1f1b and gpipe are tried, then all synchronous rows but optimal; the fastest is taken");
    for (const Schedule *k = schedules; k->name; k++)
        printf("%-21s %s\n", k->name, k->about);
}

/* An option of the page that --help prints; NULL: none is near. */
static const char *near_option(const char *option)
{
    Strs names = {0};
    for (const char *at = usage_options; (at = strstr(at, "--")); at += strcspn(at, " ,;\n"))
        *PUSH(&names) = strf("%.*s", (int)strcspn(at, " ,;\n"), at);
    return nearest(option, names.at, names.n);
}

static NORETURN void no_option(const char *option)
{
    const char *near = near_option(option);
    misuse(near ? strf("unknown option %%s; did you mean %s?", near) : "unknown option %s", option);
}

static const Option table[] = {
    {"-o", "DIR or FILE", WRITES_FILE, offsetof(Options, out)}, {"--from", "FILE", READS_FILE, offsetof(Options, from)},
    {"-d", "LETTERS", TAKES_TEXT, offsetof(Options, dump)}, {"--profile", "FILE", READS_FILE, offsetof(Options, profile)},
    {"--prefix", "NAME", TAKES_TEXT, offsetof(Options, prefix)}, {"--devices", "FILE", READS_FILE, offsetof(Options, devices)},
    {"--planners", "A,B,...", TAKES_TEXT, offsetof(Options, planners)}, {"--csv", "NAME", TAKES_TEXT, offsetof(Options, csv)},
    {"--trace", "FILE", READS_FILE, offsetof(Options, trace)},
    {"--tensorboard", "DIR", WRITES_FOLDER, offsetof(Options, tensorboard)}, {0}};

/* An option of the model, or of no one. */
static void take_override(Options *x, const char *option, const char *value)
{
    if (!strcmp(option, "-D"))
        *PUSH(&x->over.define) = value;
    else if (!strcmp(option, "--set"))
        *PUSH(&x->over.set) = value;
    else if (override_path(option))
        *PUSH(&x->over.set) = strf("%s=%s", option, value);
    else
        no_option(option);
    if (!option_is_value(value))
        misuse("%s needs a value", option);
}

/* Commands; without one, a model file and -o.  pack has a command line of its own. */
enum { GENERATE = 1, CHECK = 2, PLAN = 4, EXPLAIN = 8, COMPARE = 16, PROFILE = 32, PACK = 64, REPORT = 128, METRICS = 256,
    NEW = 512, SCHEDULES = 1024, TOKENS = 2048,
    FILES = REPORT | METRICS,       /* written by a job: without a model */
    PLANS = GENERATE | PLAN | EXPLAIN | COMPARE | SCHEDULES };
static const struct { const char *name; int bit; } verbs[] = {
    {"check", CHECK}, {"plan", PLAN}, {"explain", EXPLAIN}, {"compare", COMPARE}, {"profile", PROFILE}, {"pack", PACK},
    {"report", REPORT}, {"metrics", METRICS}, {"new", NEW}, {"import", NEW}, {"export", NEW}, {"schedules", SCHEDULES},
    {"tokens", TOKENS}};

static int verb_bit(const char *word)
{
    for (size_t i = 0; word && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(word, verbs[i].name))
            return verbs[i].bit;
    return 0;
}

/* A model file, unless no file is called so and a command nearly is. */
static void check_verb(const char *word)
{
    enum { VERBS = sizeof verbs / sizeof *verbs };
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

/* An option that a command would ignore is a mistake in the command line. */
static void check_ignored(const Options *x)
{
    int verb = x->verb ? verb_bit(x->verb) : GENERATE;
    const struct { const char *option; bool given; int taken; bool unless; } uses[] = {
        {"-o", x->out, GENERATE | COMPARE | PROFILE | REPORT | SCHEDULES, false}, {"--prefix", x->prefix, GENERATE, false},
        {"--json", x->json, PLAN | COMPARE | SCHEDULES, x->dump}, {"--profile", x->profile, PLANS, x->estimate},
        {"--estimate", x->estimate, PLANS, false}, {"--elsewhere", x->elsewhere, PLANS, x->estimate},
        {"--pace", x->pace, ~(PROFILE | FILES), false},
        {"--parameters", x->parameters, CHECK, x->dump},
        {"--quick", x->quick, COMPARE, false}, {"--planners", x->planners, COMPARE, false},
        {"-d", x->dump, ~(EXPLAIN | COMPARE | SCHEDULES | PROFILE | FILES), false},
        {"-D", x->over.define.n > 0, ~FILES, false}, {"--devices", x->devices, ~FILES, false},
        {"an option of the plan", x->over.set.n > 0, ~FILES, false}, {"--trace", x->trace, REPORT, false},
        {"--tensorboard", x->tensorboard, METRICS, false}, {"--csv", x->csv, SCHEDULES, false},
        {"--planner", sets_planner(x), ~COMPARE, false}, {"--from", x->from, ~(PROFILE | FILES), false}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        if (uses[i].given && (!(uses[i].taken & verb) || uses[i].unless))
            misuse(strf("dpgen %s has no use for %%s%s%s", x->verb ? x->verb : "MODEL.yaml",
                        uses[i].taken & verb && x->dump ? " with -d" : "",
                        uses[i].taken & verb && x->estimate ? " with --estimate" : ""), uses[i].option);
}

/* NAME.h, NAME.o and NAME_main stand beside the files of the folder. */
static void check_prefix(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", *c) || strchr("0123456789", *name))
            misuse("--prefix %s is not a C identifier", name);
    bool taken = !strncmp(name, "stage", 5) || !strcmp(name, "train") || !strcmp(name, "launch") || !strcmp(name, "kernels");
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
    if (verb_bit(x->verb) == NEW)
        misuse("%s comes first, with a command line of its own; see dpgen --help", x->verb);
    if (!x->file && !(x->from && (verb_bit(x->verb) & (CHECK | PLAN | COMPARE | SCHEDULES | EXPLAIN))))
        misuse("%s", "no model file");
    if (verb_bit(x->verb) == EXPLAIN && !x->what)
        misuse("explain needs a name: dpgen explain %s NAME, of an operator, a tensor, a parameter, a block ...",
               x->file ? x->file : "--from FILE");
    check_ignored(x);
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

void options_answer(int argc, char **argv, const char *commit)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(word, "--help") || !strcmp(word, "-h") || (i == 1 && !strcmp(word, "help") && access(word, F_OK) != 0))
            printf("%s%s", usage, usage_options);
        else if (!strcmp(word, "--version"))
            printf("dpgen %s\n%s%s%slicence Apache-2.0; what it writes is yours\nlibyaml %s\ncompiler %s\n", DPGEN_VERSION,
                   *commit ? "commit " : "", commit, *commit ? "\n" : "", load_library(), COMPILER);
        else if (!strcmp(word, "-d") && !strcmp(next, "?"))
            list_dumps();
        else if (!strcmp(word, "--planner") && !strcmp(next, "?"))
            list_planners();
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
        if (!strcmp(word, "--json"))
            x.json = true;
        else if (!strcmp(word, "--parameters"))
            x.parameters = true;
        else if (!strcmp(word, "--estimate"))
            x.estimate = true;
        else if (!strcmp(word, "--elsewhere"))
            x.elsewhere = true;
        else if (!strcmp(word, "--pace"))
            x.pace = true;
        else if (!strcmp(word, "--quick"))
            x.quick = true;
        else if ((used = option_take(table, &x, argv + i)))
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
