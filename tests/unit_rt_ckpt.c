/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_ckpt: checkpoints of a job whose step is a few additions, small enough to be damaged everywhere.
 *
 * Resume under another partition must give the bits of the uninterrupted run; every single bit and every cut of every
 * file must be refused with status 5; a process killed at any moment must leave a directory to go on from; a full
 * disk ends the job and leaves the last checkpoint; and what does not belong to the job is named.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include "ckpt.h"
#include "unit_rt.h"

enum { VALS = 0, ROOM = 128, STATES = 10, ARENA = ROOM + STATES * 64 };

static char dir[] = "/var/tmp/unit_rt_ckpt.XXXXXX";
static bool slow;               /* steps that last, for a killer to hit */

/* ---- two partitions of one model: a.weight is tied, b.bias and c.weight are not ---------------------------------- */

#define STATE(name, kind, home, slot, n) {name, kind, home, ROOM + 64 * (slot), NOWHERE, n, 1, {n}, JOB_NORMAL, 0, 1, 1, 1, \
                                          0, 0, 0, 0, 0, 0, 0, 0, 0, {0}}
#define ALL(name, slot, n) STATE(name, STATE_PARAM, 1, slot, n), STATE(name, STATE_MOMENT1, 1, slot + 1, n), \
                           STATE(name, STATE_MOMENT2, 1, slot + 2, n)
static const StateInfo one[] = {ALL("a.weight", 0, 6), ALL("b.bias", 3, 3), ALL("c.weight", 6, 5)};
static const StateInfo first[] = {ALL("b.bias", 0, 3), STATE("a.weight", STATE_PARAM, 0, 3, 6)};
static const StateInfo second[] = {ALL("c.weight", 0, 5), ALL("a.weight", 3, 6)};

/* p, m and v of what is at home here change as a function of themselves and the step. */
static void step(Stage *st)
{
    const StageInfo *info = st->worker->info;
    action(st, 0, "everything");
    step_begin(st, A(VALS));
    const Values *v = A(VALS);
    for (int i = 0; i < info->states; i++)
        for (long k = 0; info->state[i].owned && k < info->state[i].n; k++) {
            float *x = (float *)A(info->state[i].offset) + k;
            *x = *x * 0.9375f + (float)(v->step + k + info->state[i].kind);
        }
    if (slow)
        nanosleep(&(struct timespec){0, 300000}, NULL);
    step_end(st, A(VALS));
}

static void nothing(Stage *st)
{
    (void)st;
}

#define STAGE(title, list) {.name = title, .arena = ARENA, .vals = VALS, .threads = 1, .actions = 1, .open = nothing, \
                            .step = step, .states = sizeof list / sizeof *list, .state = list}
static const StageInfo whole[] = {STAGE("stage0", one)}, halves[] = {STAGE("stage0", first), STAGE("stage1", second)};
static const char hash_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char hash_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

static const Setting settings[] = {{"train.optimizer.lr", "0.01"}, {"train.schedule.type", "constant"}, {NULL, NULL}};
static const Setting others[] = {{"train.optimizer.lr", "0.02"}, {"new", "1"}, {NULL, NULL}};

static Job make_job(int stages)
{
    return (Job){.name = "tiny", .kernels = "none", .key = "key", .model = hash_a, .plan = hash_b, .stages = stages,
                 .stage = stages == 1 ? whole : halves, .batch = 1, .micro = 1, .groups = 1, .steps = 12, .tokens = 1,
                 .seed = 5, .lr = 1, .ckpt_every = 2, .ckpt_keep = 2, .ckpt_async = 1,
                 .moments = "adamw", .setting = settings};
}

/* ---- running it in a child --------------------------------------------------------------------------------------- */

typedef struct { Job job; const char *argument[12]; char out[96]; } Call;

static int call(void *at)
{
    Call *c = at;
    int n = 0, file = open(c->out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    char *argv[16] = {"train"};
    while (c->argument[n]) {
        argv[n + 1] = (char *)(uintptr_t)c->argument[n];
        n++;
    }
    dup2(file, STDOUT_FILENO);
    return job_main(&c->job, n + 1, argv);
}

static void sub(char *to, const char *name)
{
    snprintf(to, 96, "%s/%s", dir, name);
}

static Call make_call(int stages, const char *a, const char *b, const char *c, const char *d, const char *e,
                      const char *f)
{
    Call x = {.job = make_job(stages), .argument = {"--quiet", "--hash", a, b, c, d, e, f}};
    sub(x.out, "out");
    return x;
}

static void read_hash(const Call *c, char hex[65])
{
    FILE *f = fopen(c->out, "r");
    hex[0] = 0;
    if (!f || fscanf(f, "sha256 %64s", hex) != 1)
        hex[0] = 0;
    if (f)
        fclose(f);
}

static void expect_hash(const char *what, Call *c, const char *want)
{
    char said[512], hex[65];
    int status = in_child(call, c, said, sizeof said);
    read_hash(c, hex);
    check(status == 0 && strcmp(hex, want) == 0, "%s: status %d, hash %.12s, not %.12s: %s", what, status, hex, want,
          said);
}

static void clean(const char *name)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s/%s", dir, name);
    check(system(command) == 0, "cannot remove %s", name);
}

/* ---- resume ------------------------------------------------------------------------------------------------------ */

static char straight[65], ck[96];

static void test_resume(void)
{
    char said[512];
    Call c = make_call(1, "--no-checkpoint", NULL, NULL, NULL, NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "the straight run: %s", said);
    read_hash(&c, straight);
    c = make_call(2, "--no-checkpoint", NULL, NULL, NULL, NULL, NULL);
    expect_hash("two stages", &c, straight);
    for (int from = 1; from <= 2; from++)
        for (int to = 1; to <= 2; to++) {
            clean("ck");
            c = make_call(from, "--checkpoint", ck, "--steps", "7", NULL, NULL);
            check(in_child(call, &c, said, sizeof said) == 0, "7 steps: %s", said);
            c = make_call(to, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
            expect_hash("7 steps, then 5", &c, straight);
        }
    c = make_call(2, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    expect_hash("nothing left to do", &c, straight);
}

static bool exists(const char *name)
{
    char path[160];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", ck, name);
    return stat(path, &info) == 0;
}

static void test_keep(void)
{
    static const char *const gone[] = {"step-000002", "step-000004", "step-000006", "step-000008", "step-000012.part"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        check(!exists(gone[i]), "%s is still there", gone[i]);
    check(exists("step-000010/COMMIT") && exists("step-000012/COMMIT"), "the last two checkpoints are not there");
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static StateInfo more[10];
static StageInfo other_stage;

static Call other_states(Call c, int n)
{
    other_stage = whole[0];
    other_stage.state = more;
    other_stage.states = n;
    c.job.stage = &other_stage;
    return c;
}

static void test_refused(void)
{
    char none[96], out[96];
    sub(none, "none");
    sub(out, "nowhere/x.safetensors");
    Call c = make_call(1, "--checkpoint", ck, NULL, NULL, NULL, NULL);
    refuse("a directory in use", call, &c, STATUS_STALE, "--resume");
    c = make_call(1, "--checkpoint", none, "--resume", NULL, NULL, NULL);
    refuse("nothing to resume", call, &c, STATUS_STALE, "no committed checkpoint");
    c = make_call(1, "--resume", NULL, NULL, NULL, NULL, NULL);
    refuse("no directory", call, &c, STATUS_USAGE, "needs --checkpoint");
    c = make_call(1, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    c.job.model = hash_b;
    refuse("another model", call, &c, STATUS_STALE, "belongs to another model");
    c.job.model = hash_a;
    c.job.seed = 6;
    refuse("another seed", call, &c, STATUS_STALE, "seed 5, this job has 6");
    c.job.seed = 5;
    c.job.batch = 2;
    refuse("another micro-batch", call, &c, STATUS_STALE, "batch 1, this job has 2");
    c.job.batch = 1;
    c.job.micro = 4;
    refuse("more micro-batches", call, &c, STATUS_STALE, "micro 1, this job has 4");
    refuse("the way out", call, &c, STATUS_STALE, "/ck/step-000012");
    c.job.micro = 1;
    c.job.batch = 2;
    c.job.model = hash_b;           /* it has the samples of a micro-batch in it */
    refuse("another micro-batch, and so another model", call, &c, STATUS_STALE, "batch 1, this job has 2");
    c.job.batch = 1;
    c.job.model = hash_a;
    c.job.groups = 2;
    refuse("more groups", call, &c, STATUS_STALE, "groups 1, this job has 2");
    c.job.groups = 1;
    memcpy(more, one, sizeof one);
    more[9] = more[0];
    more[9].name = "d.weight";
    c = other_states(c, 10);
    refuse("a tensor more", call, &c, STATUS_STALE, "tensor `d.weight` is missing");
    more[6].ndim = 2;
    more[6].dim[1] = 1;
    c = other_states(c, 9);
    refuse("another shape", call, &c, STATUS_STALE, "tensor `c.weight` is F32 [5], the job wants F32 [5 1]");
    c = make_call(1, "--weights", out, "--no-checkpoint", NULL, NULL, NULL);
    refuse("no weights", call, &c, STATUS_STALE, "cannot open");
    c = make_call(1, "--no-checkpoint", "--checkpoint", ck, NULL, NULL, NULL);
    refuse("a directory, and none", call, &c, STATUS_USAGE, "--checkpoint and --no-checkpoint exclude each other");
    c = make_call(1, "--steps", "x", NULL, NULL, NULL, NULL);
    refuse("no number", call, &c, STATUS_USAGE, "--steps needs N");
    c = make_call(1, "--stepz", NULL, NULL, NULL, NULL, NULL);
    refuse("no option", call, &c, STATUS_USAGE, "unknown option `--stepz`");
    c = make_call(1, "--data", NULL, NULL, NULL, NULL, NULL);
    refuse("no value", call, &c, STATUS_USAGE, "--data needs PATH");
}

static void goes_on(const char *what, Call *c, const char *text)
{
    char said[1024];
    int status = in_child(call, c, said, sizeof said);
    check(status == 0 && (text ? strstr(said, text) != NULL : !*said), "%s: status %d: %s", what, status, said);
}

/* Any number of settings, of any length: the last group of 301 is new, and the mean of 600 channels is another one. */
static void test_many_settings(void)
{
    enum { GROUPS = 301, CHANNELS = 600 };
    static char name[GROUPS][40], mean[2][5 * CHANNELS + 1];
    static Setting many[2][GROUPS + 2];
    for (int i = 0; i < GROUPS; i++) {
        snprintf(name[i], sizeof name[i], "train.optimizer.groups.%d", i);
        many[0][1 + i] = many[1][1 + i] = (Setting){name[i], "1 parameters"};
    }
    for (int k = 0; k < 2; k++) {
        for (int c = 0; c < CHANNELS; c++)
            memcpy(&mean[k][5 * c], c == 0 ? "0.1, " : k ? "0.3, " : "0.2, ", 6);
        many[k][0] = (Setting){"model.inputs.x.mean", mean[k]};
    }
    many[0][GROUPS] = (Setting){NULL, NULL};
    clean("ck");
    Call c = make_call(1, "--checkpoint", ck, "--steps", "4", NULL, NULL);
    c.job.setting = many[0];
    goes_on("300 groups", &c, NULL);
    c = make_call(1, "--checkpoint", ck, "--resume", "--steps", "5", NULL);
    c.job.setting = many[1];
    goes_on("another mean, and another group", &c, "), train.optimizer.groups.300 none (now 1 parameters); from step 4");
}

/* What gives the numbers of a checkpoint their meaning, and what each step has beside them. */
static void test_meaning(void)
{
    clean("ck");
    Call c = make_call(1, "--checkpoint", ck, "--steps", "4", NULL, NULL), d;
    c.job.key = "model=1 compute=f32 kernels=portable";
    goes_on("a checkpoint with its meaning", &c, NULL);
    c = make_call(1, "--checkpoint", ck, "--resume", "--steps", "5", NULL);
    c.job.key = "model=2 compute=f32 kernels=portable";
    goes_on("the same training", &c, NULL);
    d = c;
    d.job.moments = "sgd momentum";
    refuse("another optimiser", call, &d, STATUS_STALE, "moments of `adamw`, and this job reads them as those of `sgd "
           "momentum`");
    refuse("another optimiser, and the way out", call, &d, STATUS_STALE, "--weights ");
    d = c;
    d.job.setting = others;
    goes_on("another rate", &d, "with other settings: train.optimizer.lr 0.01 (now 0.02); from step 5 on");
    d = c;
    d.job.key = "model=1 compute=f32 kernels=onednn";
    goes_on("other kernels", &d, "computed with `compute=f32 kernels=portable`, and this job goes on with `compute=f32 "
            "kernels=onednn`");
    d.job.key = "model=1 compute=f32 kernels=portable order=2";
    goes_on("sums of another order", &d, "and this job goes on with `compute=f32 kernels=portable order=2`: its bits are those "
            "of neither alone, for sums are of another order now, 2");
    d.job.key = "model=1 compute=bf16 kernels=portable";
    d.job.model = hash_b;
    refuse("another type", call, &d, STATUS_STALE, "was trained in f32, this job computes in bf16");
    clean("ck");
    c = make_call(1, "--checkpoint", ck, "--steps", "4", NULL, NULL);
    c.job.moments = NULL;
    c.job.setting = NULL;
    goes_on("a checkpoint that does not say it", &c, NULL);
    c = make_call(1, "--checkpoint", ck, "--resume", "--steps", "4", NULL);
    goes_on("of an older dpgen", &c, "of a dpgen before 0.2.0, which did not say whose moments it has");
}

static int as_nobody(void *at)
{
    return geteuid() == 0 && setuid(65534) != 0 ? 2 : call(at);
}

/* Why nothing can be written there, before the first step. */
static void test_places(void)
{
    char path[96], deep[96], text[200], far[4200];
    sub(path, "dangling");
    sub(deep, "none/b/c");
    check(symlink("nowhere", path) == 0, "no link");
    Call c = make_call(1, "--checkpoint", path, NULL, NULL, NULL, NULL);
    refuse("a link to nothing", call, &c, STATUS_RUN, "dangling is a link to what is not there");
    c = make_call(1, "--checkpoint", deep, NULL, NULL, NULL, NULL);
    snprintf(text, sizeof text, "there is no %s/none; make it first", dir);
    refuse("a folder above is missing", call, &c, STATUS_RUN, text);
    sub(path, "secret");
    c = make_call(1, "--checkpoint", path, NULL, NULL, NULL, NULL);
    c.out[0] = 0;
    refuse("no right to write", as_nobody, &c, STATUS_RUN, "cannot write checkpoints there: Permission denied");
    memset(far, 'x', sizeof far);
    for (size_t i = 100; i < sizeof far; i += 200)
        far[i] = '/';
    for (size_t n = 4060; n < 4100; n += 13) {
        far[n] = 0;
        c = make_call(1, "--checkpoint", far, NULL, NULL, NULL, NULL);
        refuse("a path that is too long", call, &c, n < 4091 ? STATUS_RUN : STATUS_USAGE, "--checkpoint: a path of ");
        far[n] = 'x';
    }
}

/* A line of the log has room for any path. */
static void test_long_line(void)
{
    char deep[1200], log[96], line[4096], said[512];
    size_t n = (size_t)snprintf(deep, sizeof deep, "%s", dir);
    for (int i = 0; i < 5; i++) {
        n += (size_t)snprintf(deep + n, sizeof deep - n, "/%0200d", i);
        check(mkdir(deep, 0777) == 0, "cannot make %s", deep);
    }
    sub(log, "long.jsonl");
    Call c = make_call(1, "--checkpoint", deep, "--steps", "1", "--log", log);
    int status = in_child(call, &c, said, sizeof said), lines = 0, whole = 0, named = 0;
    FILE *f = fopen(log, "r");
    for (; f && fgets(line, sizeof line, f); lines++) {
        n = strlen(line);
        whole += line[0] == '{' && n > 2 && !strcmp(line + n - 2, "}\n");
        named += strstr(line, deep) != NULL;
    }
    check(status == 0 && whole == lines && named == 1, "a long path: status %d, %d of %d lines are whole, %d name it: %s",
          status, whole, lines, named, said);
    if (f)
        fclose(f);
}

/* Numbers of options are decimal, as those of the model file. */
static void test_decimal(void)
{
    char want[65], said[512];
    Call c = make_call(1, "--no-checkpoint", "--steps", "10", NULL, NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "10 steps: %s", said);
    read_hash(&c, want);
    c = make_call(1, "--no-checkpoint", "--steps", "010", NULL, NULL, NULL);
    expect_hash("--steps 010", &c, want);
    c = make_call(1, "--no-checkpoint", "--fill", "0xff", "--steps", "10", NULL);
    expect_hash("--fill 0xff", &c, want);
    c = make_call(1, "--no-checkpoint", "--steps", "0x10", NULL, NULL, NULL);
    refuse("--steps 0x10", call, &c, STATUS_USAGE, "--steps needs N");
}

static void put_number(const char *folder, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    check(f && fputs(text, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
}

/* Of a control group and those that it is in, the one that leaves least counts; one without a limit says max, or nothing. */
static void test_groups(void)
{
    static const struct { const char *limit[3], *used[3]; double left; } cases[] = {
        {{"max", "max", "max"}, {"7", "7", "7"}, 1000}, {{"max", "500", "max"}, {"7", "120", "7"}, 380},
        {{"900", "500", "max"}, {"0", "120", "7"}, 380}, {{"900", "500", "300"}, {"0", "120", "250"}, 50},
        {{"2000", "max", "max"}, {"0", "0", "0"}, 1000}, {{"10", "max", "max"}, {"30", "0", "0"}, -20},
    };
    char root[96], folder[3][140], path[140];
    sub(root, "group");
    for (int k = 0; k < 3; k++) {
        snprintf(folder[k], sizeof folder[k], "%s%.*s", root, 2 * k, "/b/c");
        check(mkdir(folder[k], 0700) == 0, "cannot make %s", folder[k]);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 3; k++) {
            put_number(folder[k], "most", cases[i].limit[k]);
            put_number(folder[k], "now", cases[i].used[k]);
        }
        strcpy(path, folder[2]);
        double left = beside_left(path, strlen(root), "most", "now", 1000);
        check(left == cases[i].left, "groups %zu leave %g, not %g", i, left, cases[i].left);
    }
    strcpy(path, folder[2]);
    check(beside_left(path, strlen(root), "none", "now", 1000) == 1000, "groups without files have a limit");
}

/* Weights of a checkpoint as the start of another run: parameters as they were, moments zero. */
static void test_weights(void)
{
    char file[160], want[65], said[512];
    clean("ck");
    Call c = make_call(1, "--checkpoint", ck, "--steps", "4", NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "4 steps: %s", said);
    read_hash(&c, want);
    snprintf(file, sizeof file, "%s/step-000004/stage0.safetensors", ck);
    c = make_call(2, "--weights", file, "--steps", "0", "--no-checkpoint", NULL);
    expect_hash("weights alone", &c, want);
    clean("ck");
    c = make_call(2, "--checkpoint", ck, "--steps", "4", NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "4 steps of two stages: %s", said);
    *strrchr(file, '/') = 0;
    c = make_call(1, "--weights", file, "--steps", "0", "--no-checkpoint", NULL);
    c.job.batch = 3;
    expect_hash("weights of a checkpoint of two files, under another batch", &c, want);
    clean("ck");
    c = make_call(1, "--checkpoint", ck, "--steps", "4", NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "4 steps again: %s", said);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* ckpt_load() without the rest of the job, thousands of times. */
static unsigned char arena[ARENA];

static int load(void)
{
    Job job = make_job(1);
    Worker w = {.info = whole, .stage = {.arena = arena}};
    Run run = {.job = &job, .opt = {.checkpoint = ck, .resume = true}, .count = 1, .worker = &w, .main = true};
    w.run = &run;
    return ckpt_load(&run);
}

static size_t read_file(const char *path, unsigned char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(to, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void write_file(const char *path, const unsigned char *data, size_t n)
{
    int file = open(path, O_WRONLY | O_TRUNC);
    if (file < 0 || write(file, data, n) != (ssize_t)n || close(file) != 0)
        exit(2);
}

static void damage(const char *name)
{
    static unsigned char file[65536];
    char path[160];
    snprintf(path, sizeof path, "%s/step-000004/%s", ck, name);
    size_t n = read_file(path, file, sizeof file), cuts = 0, bits = 0;
    check(n > 0 && n < sizeof file, "%s has %zu bytes", name, n);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path, file, cut);
        cuts += load() == STATUS_STALE;
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path, file, n);
        bits += load() == STATUS_STALE;
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    file[n] = '\n';
    write_file(path, file, n + 1);
    bool longer = load() == STATUS_STALE;
    write_file(path, file, n);
    check(cuts == n && bits == 8 * n && longer, "%s: %zu of %zu cuts and %zu of %zu bits are refused, a byte more "
          "%s", name,
          cuts, n, bits, 8 * n, longer ? "too" : "is not");
}

static void test_damage(void)
{
    int err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
    check(load() == DONE, "the undamaged checkpoint is refused");
    dup2(null, STDERR_FILENO);
    static const char *const names[] = {"COMMIT", "index.json", "stage0.safetensors"};
    int before = failed;
    for (int i = 0; i < 3; i++)
        damage(names[i]);
    dup2(err, STDERR_FILENO);
    close(null);
    close(err);
    check(failed == before, "damage goes unseen; run it with the messages of load() to see more");
    check(load() == DONE, "the mended checkpoint is refused");
}

/* Newest without COMMIT: not committed, so the one before counts. */
static void test_uncommitted(void)
{
    char path[160], said[512];
    Call c = make_call(1, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "to the end: %s", said);
    snprintf(path, sizeof path, "%s/step-000012/COMMIT", ck);
    check(unlink(path) == 0, "no COMMIT at step 12");
    c = make_call(2, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    expect_hash("from step 10, over an uncommitted step 12", &c, straight);
    check(exists("step-000012/COMMIT"), "step 12 was not written again");
}

/* ---- kills and a full disk --------------------------------------------------------------------------------------- */

/* A child that checkpoints after each of its steps is killed at a moment that moves from run to run. */
static void test_kills(int times)
{
    char want[65], said[512];
    Call c = make_call(2, "--no-checkpoint", "--steps", "200", NULL, NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "200 steps: %s", said);
    read_hash(&c, want);
    clean("ck");
    for (int i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) {
            slow = true;
            c = make_call(1 + i % 2, "--checkpoint", ck, "--steps", "200", exists("step-000001") ? "--resume" : NULL,
                          NULL);
            c.job.ckpt_every = 1;
            c.job.ckpt_keep = 300;
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
            _exit(call(&c));
        }
        nanosleep(&(struct timespec){0, 2000000 + (i * 7919 % 97) * 61000}, NULL);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        check(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "run %d ends with status %d", i, WEXITSTATUS(status));
    }
    c = make_call(2, "--checkpoint", ck, "--steps", "200", exists("step-000001") ? "--resume" : NULL, NULL);
    expect_hash("after all kills", &c, want);
}

static int limited(void *at)
{
    struct rlimit small = {700, 700};       /* the third file does not fit any more */
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    return call(at);
}

static void test_full_disk(void)
{
    char said[512];
    clean("ck");
    Call c = make_call(1, "--checkpoint", ck, "--steps", "2", NULL, NULL);
    check(in_child(call, &c, said, sizeof said) == 0, "2 steps: %s", said);
    c = make_call(1, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    refuse("no room", limited, &c, STATUS_RUN, "the last committed checkpoint is as it was");
    check(exists("step-000002/COMMIT") && !exists("step-000004") && !exists("step-000004.part"),
          "what a failed write leaves");
    c = make_call(1, "--checkpoint", ck, "--resume", NULL, NULL, NULL);
    expect_hash("after the failed write", &c, straight);
}

int main(int argc, char **argv)
{
    if (!mkdtemp(dir))
        return 2;
    sub(ck, "ck");
    test_resume();
    test_keep();
    test_refused();
    test_meaning();
    test_many_settings();
    test_places();
    test_long_line();
    test_decimal();
    test_groups();
    test_weights();
    test_damage();
    test_uncommitted();
    test_full_disk();
    test_kills(argc > 1 ? atoi(argv[1]) : 60);
    clean("");
    return finish("unit_rt_ckpt");
}
