/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: conversations, a line of JSON each, to arrays of tokens, of targets outside of which -100 stands, and of document
 * numbers.
 *
 * The template of the model writes a conversation.  What is an answer is what it marks with {% generation %}.  Where it marks
 * nothing, an answer is what is between the text of the messages before it, with the words that ask for an answer, and the text
 * that has it too; both have to begin the whole text.  The whole text becomes tokens at once, as in transformers.  A place in
 * the text is that of the first token in which the tokens of the text before it are no longer those of the whole: a token that
 * crosses the border in front of an answer belongs to the answer.
 *
 * Samples are filled in the order of the file: a conversation that does not fit into the rest of a sample begins the next one.
 * Cost: a conversation of n answers is written 2 n + 1 times.
 */
#include "chat.h"
#include "render.h"
#include <unistd.h>

typedef struct { Steps steps; Value names; } Template;
typedef struct { const char *path; int line; } Where;
typedef struct { Ints token; Ints answer; } Dialogue;     /* answer: 1 for each token of one */
typedef struct {
    const Tokenizer *t;
    const Template *template;
    int length, dialogues, answers, cut, left_out, used;    /* used: positions of the last sample */
    int next;                                               /* its next document */
    Ints token, target, document;
} Packer;

#define refuse(w, ...) fail(EXIT_MODEL, "%s:%d: %s", (w)->path, (w)->line, strf(__VA_ARGS__))

/* ---- the template -------------------------------------------------------------------------------------------------------- */

static const Value *named(const Value *list, const char *name)
{
    for (int i = 0; list->kind == LISTED && i < list->at.n; i++) {
        const Value *is = value_member(&list->at.at[i], "name");
        if (is && is->kind == STRING && !strcmp(is->s, name))
            return value_member(&list->at.at[i], "template");
    }
    return list->kind == STRING ? list : NULL;
}

static Template open_template(const char *path)
{
    Template to = {.names = {.kind = MAPPED}};
    size_t n, k = strlen(path);
    const char *text = file_read(path, "name tokenizer_config.json, or a file of its chat_template that ends with .jinja", &n);
    bool json = k < 6 || strcmp(path + k - 6, ".jinja"), bare = !json;
    const char *slash = strrchr(path, '/'), *beside = slash ? strf("%.*s/tokenizer_config.json", (int)(slash - path), path)
                                                            : "tokenizer_config.json";
    const char *config_path = json ? path : beside;
    if (bare && access(beside, R_OK) != 0)
        config_path = NULL;
    size_t config_n = n;
    const char *config_text = json ? text : config_path ? file_read(config_path, "", &config_n) : NULL;
    Value config = config_text ? value_json(config_path, config_text, config_n) : (Value){.kind = MAPPED};
    const Value *found = json ? value_member(&config, "chat_template") : NULL;
    const Value *is = found ? named(found, "default") : NULL;
    if (json && !is)
        fail(EXIT_MODEL, "%s: there is no chat_template; models that chat have one there, or in chat_template.jinja", path);
    /* bos_token and the like are names of a template: texts, or objects with their content. */
    for (int i = 0; i < config.key.n; i++) {
        const char *key = config.key.at[i], *tail = strrchr(key, '_');
        const Value *v = &config.at.at[i], *content = value_member(v, "content");
        if (tail && !strcmp(tail, "_token") && (content ? content : v)->kind == STRING)
            value_put(&to.names, key, content ? *content : *v);
    }
    value_put(&to.names, "tools", (Value){.kind = NONE});
    value_put(&to.names, "documents", (Value){.kind = NONE});
    to.steps = template_read(json ? strf("%s, chat_template", path) : path, json ? is->s : text);
    return to;
}

/* ---- a conversation ------------------------------------------------------------------------------------------------------ */

static Rendered render(const Template *template, const Where *w, const Value *messages, int count, bool ask)
{
    Value names = template->names, some = {.kind = LISTED};
    for (int i = 0; i < count; i++)
        *PUSH(&some.at) = messages->at.at[i];
    names.key.cap = names.key.n;            /* what is added goes elsewhere */
    names.at.cap = names.at.n;
    value_put(&names, "messages", some);
    value_put(&names, "add_generation_prompt", (Value){.kind = BOOLEAN, .i = ask});
    Rendered r = template_render(&template->steps, &names);
    if (r.refusal)
        refuse(w, "the template refuses the first %s: %s", count_text(count, "message"), r.refusal);
    return r;
}

/* Where answers begin and end in the whole text. */
static void find_answers(const Template *template, const Where *w, const Value *messages, Rendered *all)
{
    if (all->from.n > 0)
        return;
    for (int i = 0; i < messages->at.n; i++) {
        if (strcmp(value_member(&messages->at.at[i], "role")->s, "assistant"))
            continue;
        const char *before = render(template, w, messages, i, true).text;
        const char *with = render(template, w, messages, i + 1, false).text;
        if (!text_begins(all->text, before) || !text_begins(all->text, with) || strlen(with) < strlen(before))
            refuse(w, "message %d: what the template writes of it depends on what comes behind it; mark answers in the "
                   "template with {%% generation %%} and {%% endgeneration %%}", i + 1);
        *PUSH(&all->from) = (int)strlen(before);
        *PUSH(&all->to) = (int)strlen(with);
    }
}

/* The tokens of the whole that are those of its first n bytes. */
static int tokens_before(const Tokenizer *t, const Where *w, const char *text, int n, const Ints *whole)
{
    Ints part = {0};
    int same = 0;
    tokenizer_encode(t, w->path, strf("%.*s", n, text), (size_t)n, &part);
    while (same < part.n && same < whole->n && part.at[same] == whole->at[same])
        same++;
    return same;
}

static Dialogue read_dialogue(const Packer *p, const Where *w, const char *text, size_t n)
{
    Dialogue d = {0};
    Value line = value_json(strf("%s:%d", w->path, w->line), text, n);
    const Value *messages = value_member(&line, "messages"), *tools = value_member(&line, "tools");
    if (messages && messages->kind == LISTED && messages->at.n == 0)
        refuse(w, "'messages' of this line is empty: leave the line out");
    if (!messages || messages->kind != LISTED)
        refuse(w, "this line has no 'messages'; a conversation is {\"messages\": [{\"role\": ..., \"content\": ...}, ...]}");
    for (int i = 0; i < messages->at.n; i++) {
        static const char *const keys[] = {"role", "content"};
        for (int k = 0; k < 2; k++) {
            const Value *v = value_member(&messages->at.at[i], keys[k]);
            if (!v || v->kind != STRING)
                refuse(w, "message %d: '%s' is to be a text", i + 1, keys[k]);
        }
        if (value_member(&messages->at.at[i], "tool_calls"))
            refuse(w, "message %d has 'tool_calls', which dpgen does not do: write it as text", i + 1);
    }
    if (tools && tools->kind != NONE)
        refuse(w, "'tools' is not done: conversations are of texts");
    Rendered all = render(p->template, w, messages, messages->at.n, false);
    find_answers(p->template, w, messages, &all);
    tokenizer_encode(p->t, w->path, all.text, strlen(all.text), &d.token);
    for (int i = 0; i < d.token.n; i++)
        *PUSH(&d.answer) = 0;
    for (int k = 0; k < all.from.n; k++) {
        int to = tokens_before(p->t, w, all.text, all.to.at[k], &d.token);
        for (int i = tokens_before(p->t, w, all.text, all.from.at[k], &d.token); i < to; i++)
            d.answer.at[i] = 1;
    }
    return d;
}

/* ---- samples ------------------------------------------------------------------------------------------------------------- */

static void put(Packer *p, int token, int target, int document)
{
    *PUSH(&p->token) = token;
    *PUSH(&p->target) = target;
    *PUSH(&p->document) = document;
    p->used++;
}

/* Padding is one more document, without targets. */
static void fill(Packer *p)
{
    while (p->used % p->length)
        put(p, 0, -100, p->next);
    p->used = p->next = 0;
}

static void add(Packer *p, const Dialogue *d)
{
    int positions = d->token.n - 1 < p->length ? d->token.n - 1 : p->length, answers = 0;
    for (int i = 1; i <= positions; i++)
        answers += d->answer.at[i];
    p->cut += positions < d->token.n - 1;
    p->left_out += answers == 0;
    if (answers == 0)
        return;
    if (p->used + positions > p->length)
        fill(p);
    for (int i = 0; i < positions; i++)
        put(p, d->token.at[i], d->answer.at[i + 1] ? d->token.at[i + 1] : -100, p->next);
    p->next++;
    p->dialogues++;
    p->answers += answers;
}

static void read_file(Packer *p, const char *path)
{
    size_t n;
    const char *text = file_read(path, "name a file of conversations, a line of JSON each", &n), *end = text + n;
    Where w = {path, 0};
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        next = stop ? stop + 1 : end;
        w.line++;
        if (strspn(line, " \t\r\n") >= (size_t)(next - line))
            continue;
        Room *room = mem_room(), *before = mem_in(room);
        Dialogue d = read_dialogue(p, &w, line, (size_t)((stop ? stop : end) - line));
        mem_in(before);
        add(p, &d);
        mem_drop(room);
        if (p->token.n > 1 << 29)
            fail(EXIT_MODEL, "%s: more than 2^29 tokens: make several folders", path);
    }
}

static void write_array(const char *path, const Ints *numbers, int length)
{
    const char *head = strf("{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", numbers->n / length, length);
    int room = (int)(10 + strlen(head) + 1 + 63) / 64 * 64 - 10;
    FILE *f = file_begin(path);
    fputs("\x93NUMPY\x01", f);
    fputc(0, f);
    fputc(room & 0xff, f);
    fputc(room >> 8, f);
    fprintf(f, "%-*s\n", room - 1, head);
    for (int i = 0; i < numbers->n; i++)
        for (int b = 0; b < 4; b++)
            fputc((int)((uint32_t)numbers->at[i] >> (8 * b) & 0xff), f);
    file_end(f, path);
}

int chat_command(const Tokenizer *t, const char *template, const Strs *files, int length, const char *dir)
{
    Template is = open_template(template);
    Packer p = {.t = t, .template = &is, .length = length};
    for (int i = 0; i < files->n; i++)
        read_file(&p, files->at[i]);
    fill(&p);
    if (p.token.n == 0)
        fail(EXIT_MODEL, "%s: no conversation has an answer within %d positions", files->at[0], length);
    files_begin(dir, false);
    write_array(strf("%s/tokens.npy", dir), &p.token, length);
    write_array(strf("%s/targets.npy", dir), &p.target, length);
    write_array(strf("%s/documents.npy", dir), &p.document, length);
    files_end();
    printf("wrote %s: %s of %d positions, %s, %s of answers; %d cut, %d without an answer left out\n", quote_terminal(dir),
           count_text(p.token.n / length, "sample"), length, count_text(p.dialogues, "conversation"),
           count_text(p.answers, "token"), p.cut, p.left_out);
    return 0;
}
