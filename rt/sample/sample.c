/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.c: the program `sample`, text out of a language model: the stages of the job, forward.
 *
 * Each token is one evaluation of the job (StageInfo.eval), under the same plan, with the calls and bits of an evaluation in
 * training.  The samples of its micro-batch are all the text so far, padded to the length of the model's sequence.
 * Attention is causal, so what stands behind the last token changes nothing before it.  A hook looks at the call of the loss
 * (hooks.h): xent_forward() reads the scores, and the row of the last token is copied.  Other calls never have a whole row
 * (head.c).  The stage that has the row chooses (choose.c) and tells the others.  A text that is as long as the sequence goes
 * on without its first token.
 *
 * The forward pass has the same bits under any plan, and choosing is a function of the scores, the seed and the place.  So is
 * the text.
 *
 * Cost: a forward pass of a micro-batch for each token, where a cache of keys and values would have one of a position.
 * There is no such cache, for its shapes would not be those of the plan.  Stages work one after the other.  Not handled:
 * replicas but the first, which wait; models that are not causal, for which dpgen does not build this.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "choose.h"
#include "ckpt.h"
#include "data.h"
#include "link.h"
#include "options.h"
#include "real.h"
#include "sample.h"
#include "weights.h"

const char program_name[] = "sample";

typedef struct {
    const char *prompt, *tokenizer, *weights;
    long tokens, seed, top_k, watchdog;
    double temperature, top_p;
} Asked;

typedef struct Sample {
    Asked ask;
    Taste taste;
    const InputInfo *in;        /* the input that the text feeds */
    int32_t *ids;               /* the text, then padding: window + 1 */
    long window, n;             /* of the sequence; tokens of the text that are in it */
    long made;                  /* tokens that were chosen */
    double *score;              /* of the stage that has the loss: width of them, and what sorts them */
    Ranked *room;
    long width;
    int end;                    /* the last byte that was written */
    bool terminal;              /* it goes to one: no bytes that would command it */
    bool bytes;                 /* tokens are bytes; else those of a tokenizer, or numbers */
    char path[CKPT_PATH];       /* of the weights */
} Sample;

static const JobOption table[] = {
    {"--prompt", "TEXT", WORD, offsetof(Asked, prompt), "the text to go on with; default: the end of a line"},
    {"--tokenizer", "FILE", INPUT, offsetof(Asked, tokenizer), "tokenizer.json of this model: prompt and answer are text"},
    {"--tokens", "N", NUMBER, offsetof(Asked, tokens), "tokens to write behind it; default 100"},
    {"--temperature", "X", FRACTION, offsetof(Asked, temperature), "what scores are divided by; 0: the likeliest; default 1"},
    {"--top-k", "N", NUMBER, offsetof(Asked, top_k), "only the N likeliest tokens; default 0, all"},
    {"--top-p", "X", FRACTION, offsetof(Asked, top_p), "only the likeliest, of this probability in sum; default 1"},
    {"--seed", "N", NUMBER, offsetof(Asked, seed), "another text; default: the seed of the job"},
    {"--weights", "PATH", INPUT, offsetof(Asked, weights), "a safetensors file, a checkpoint, or the newest in PATH"},
    {"--watchdog", "SECONDS", NUMBER, offsetof(Asked, watchdog), "end after such a silence; 0 never"},
    {.about = "Status: 0 done, 1 failed, 2 usage, 5 foreign or broken weights, 6 wrong machine, 7 a score is not\n"
     "finite.\n"}
};

/* ---- scores -------------------------------------------------------------------------------------------------------- */

/* Room for so many scores, once. */
static double *room_for(Worker *w, long width)
{
    Sample *s = w->run->sample;
    if (s->width)
        return s->score;
    s->width = width;
    s->score = malloc((size_t)width * sizeof *s->score);
    s->room = malloc((size_t)width * sizeof *s->room);
    if (!s->score || !s->room)
        quit(w->run->link, STATUS_RUN, "no memory for the scores of %ld tokens", width);
    return s->score;
}

/* Operands by their places in rt.h. */
static void look(Stage *st, int what, const char *where, const char *call, const Given *of)
{
    static const char whole[] = "xent_forward(";
    enum { X = 2, WIDTH = 6 };
    Worker *w = st->worker;
    long at = w->run->sample->n - 1;
    (void)where;
    if (what != CALL_BEGINS)
        return;
    if (sample_parts.head)
        sample_parts.head->look(w, call, of, at, room_for);
    if (strncmp(call, whole, sizeof whole - 1) || st->shard)
        return;                 /* the first device of the stage has them too */
    long width = (long)of[WIDTH].i;
    sample_row(w, room_for(w, width), (const real *)of[X].p + at * width, width);
    w->scored = true;
}

/* ---- the loop of a stage --------------------------------------------------------------------------------------------- */

enum { NOBODY = -1, BROKEN = -2 };

/* Tokens that the input does not take are no answer. */
static int64_t choose(Sample *s)
{
    bool bounded = s->in->lo != s->in->hi;
    long from = bounded ? s->in->lo : 0, to = bounded && s->in->hi < s->width ? s->in->hi : s->width;
    long id = choose_token(s->score + from, to - from, &s->taste, s->made, s->room);
    return id < 0 ? BROKEN : from + id;
}

static int64_t next_token(Worker *w)
{
    Sample *s = w->run->sample;
    int64_t mine = NOBODY, *all = w->board;
    w->scored = false;
    if (replica_of(w) == 0)
        worker_eval(w);
    if (w->scored)
        mine = choose(s);
    link_share(&w->stage, &mine, all, sizeof mine);
    for (int i = 0; i < w->stage.count; i++)
        if (all[i] != NOBODY)
            return all[i];
    quit(w->run->link, STATUS_RUN, "no scores were seen: the sources of the stages were compiled without -DSTAGE");
}

static int write_text(Sample *s, const char *text, size_t n)
{
    if (!write_all(STDOUT_FILENO, text, n))
        return complain(STATUS_RUN, "cannot write to standard output: %s", strerror(errno));
    s->end = text[n - 1];
    return DONE;
}

/* A terminal gets no bytes that would command it. */
static int write_bytes(Sample *s, const char *from, int n)
{
    int status = DONE;
    for (int i = 0; i < n && status == DONE; i++) {
        bool commands = ((unsigned char)from[i] < ' ' && from[i] != '\n' && from[i] != '\t') || from[i] == 127;
        status = write_text(s, s->terminal && commands ? "?" : &from[i], 1);
    }
    return status;
}

static int write_ids(Sample *s, const int32_t *ids, long n)
{
    int status = DONE;
    for (long i = 0; i < n && status == DONE; i++) {
        int size = 1;
        char byte = (char)ids[i];
        const char *text = s->bytes ? &byte : sample_parts.words->word(ids[i], !s->end, &size);
        status = write_bytes(s, text, size);
    }
    return status;
}

/* The token goes behind the text; the first one leaves where there is no room. */
static int take(const Run *run, int32_t id)
{
    Sample *s = run->sample;
    if (s->n == s->window) {
        memmove(s->ids, s->ids + 1, (size_t)s->window * sizeof *s->ids);
        s->n--;
    }
    s->ids[s->n++] = id;
    s->made++;
    return run->main ? write_ids(s, &id, 1) : DONE;
}

/* All evaluate, all hear of the token, the first of each process writes it down, and all wait for that. */
static void sample_stage(Worker *w)
{
    Run *run = w->run;
    Sample *s = run->sample;
    bool first = w == run->worker;
    w->stage.hook = look;
    w->eval = true;
    if (first && run->main)
        w->status = s->ask.tokenizer ? write_bytes(s, s->ask.prompt, (int)strlen(s->ask.prompt)) : write_ids(s, s->ids, s->n);
    w->status = worst(w, w->status);
    while (w->status == DONE && s->made < s->ask.tokens) {
        int64_t id = next_token(w);
        int status = id == BROKEN ? STATUS_BROKEN : first ? take(run, (int32_t)id) : DONE;
        if (id == BROKEN && w->scored)
            complain(status, "a score is not finite: these weights are broken");
        w->status = worst(w, status);
    }
    if (first && run->main && s->end != '\n' && w->status == DONE)
        w->status = write_text(s, "\n", 1);
}

/* ---- preparation ------------------------------------------------------------------------------------------------------ */

static int sample_options(Run *run, char **argv)
{
    Sample *s = run->sample = calloc(1, sizeof *s);
    const Job *job = run->job;
    if (!s)
        return complain(STATUS_RUN, "no memory");
    s->ask = (Asked){"\n", NULL, job->ckpt_dir, 100, -1, 0, -1, 1, 1};
    int status = options_table(table, &s->ask, argv, run->main);
    if (status >= 0)
        return status;
    run->opt = (Options){.steps = 1, .quiet = true, .watchdog = s->ask.watchdog};
    s->terminal = isatty(STDOUT_FILENO) && !strcmp(link_name(), "local");       /* mpirun gives one to each rank */
    s->taste = (Taste){s->ask.temperature, s->ask.top_p, s->ask.top_k, s->ask.seed < 0 ? job->seed : (uint64_t)s->ask.seed};
    if (s->ask.top_p > 1)
        return !run->main ? STATUS_USAGE : complain(STATUS_USAGE, "--top-p is a probability: give it at most 1");
    if (s->ask.weights)
        return -1;
    return !run->main ? STATUS_USAGE : complain(STATUS_USAGE, "--weights is missing: a safetensors file, or a directory of "
                                                "checkpoints");
}

static int refuse(const Run *run, const char *form, long a, long b)
{
    return run->main ? complain(STATUS_USAGE, form, a, b) : STATUS_USAGE;
}

static int read_prompt(Run *run)
{
    Sample *s = run->sample;
    if (!s->bytes)
        return sample_parts.words->encode(run, s->ask.tokenizer, s->ask.prompt, s->ids, s->window, &s->n);
    if (s->ask.tokenizer)
        return refuse(run, "--tokenizer: tokens of this model are bytes, and need none", 0, 0);
    for (const char *at = s->ask.prompt; *at; at++, s->n++)
        if (s->n < s->window)
            s->ids[s->n] = (unsigned char)*at;
    return DONE;
}

static int prompt_open(Run *run)
{
    Sample *s = run->sample;
    const DataInfo *data = &run->job->eval;
    for (int i = 0; i < data->roles; i++)
        if (!strcmp(data->role[i], "tokens"))
            s->in = &run->job->input[data->input[i]];
    s->window = s->in->per;
    s->bytes = !strcmp(data->format, "bytes");
    s->ids = calloc((size_t)s->window + 1, sizeof *s->ids);
    if (!s->ids)
        return complain(STATUS_RUN, "no memory for the prompt");
    int status = read_prompt(run);
    if (status != DONE)
        return status;
    if (s->n == 0)
        return refuse(run, "--prompt is empty: give it at least one token", 0, 0);
    if (s->n > s->window)
        return refuse(run, "--prompt has %ld tokens, and the model sees %ld: shorten it", s->n, s->window);
    for (long i = s->n; i <= s->window; i++)
        s->ids[i] = s->ids[0];
    for (long i = 0; i < s->n; i++)
        if (s->in->lo != s->in->hi && (s->ids[i] < s->in->lo || s->ids[i] >= s->in->hi))
            return refuse(run, "--prompt: token %ld is %ld, which this model does not know", i, s->ids[i]);
    return DONE;
}

static int sample_prepare(Run *run)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    int status = machine_check(run);
    for (int i = 0; i < 3; i++)         /* there is nothing to be saved */
        signal(ends[i], SIG_DFL);
    if (status == DONE)
        status = prompt_open(run);
    if (status == DONE)
        run->loader = data_given(run->job, run->sample->ids, run->sample->window + 1, "--prompt", &status);
    if (status == DONE)
        status = prepare_workers(run);
    if (status == DONE)
        status = weights_find(run, run->sample->ask.weights, run->sample->path);
    if (status == DONE)
        status = start_values(run);
    return status;
}

static void sample_close(Run *run)
{
    Sample *s = run->sample;
    if (s) {
        free(s->ids);
        free(s->score);
        free(s->room);
    }
    free(s);
}

int job_sample(const Job *job, int argc, char **argv)
{
    static const Program sample = {table, "Write text of", sample_options, sample_prepare, sample_stage, sample_close};
    return job_run(job, &sample, argc, argv);
}
