/* SPDX-License-Identifier: Apache-2.0
 *
 * template.c: fills a template of gen/huggingface with the values of a config.json.
 *
 * A template is the model file as a person would write it, with marks: hf.h.  It has no loops and no arithmetic.
 *
 * fails   with die() at a plain mark that has no value: the table of families and the template do not agree
 */
#include "hf.h"

const char *value_get(const ConfigValues *v, const char *name)
{
    int i = INDEX_OF(v->at, v->n, name);
    return i < 0 ? NULL : v->at[i].text;
}

/* ?name| or !name| at p: true where what stands behind it is wanted; *p moves behind it. */
static bool wanted(const char **p, const ConfigValues *v, const char **value)
{
    if (**p != '?' && **p != '!')
        return true;
    bool on = **p == '?';
    const char *bar = strchr(*p, '|'), *name = strf("%.*s", (int)(bar - *p - 1), *p + 1);
    *p = bar + 1;
    *value = value_get(v, name);
    const char *text = value_get(v, name);
    return (text && *text && strcmp(text, "0") && strcmp(text, "false")) == on;
}

static void write_mark(FILE *f, const char *mark, const ConfigValues *v)
{
    const char *value = NULL;
    if (*mark != '?' && *mark != '!') {
        value = value_get(v, mark);
        if (!value)
            die("a template asks for '%s'", mark);
        fputs(value, f);
    } else {
        bool all = true;
        while (*mark == '?' || *mark == '!')
            all &= wanted(&mark, v, &value);
        for (; all && *mark; mark++)
            *mark == '$' ? fputs(value, f) : fputc(*mark, f);
    }
}

static void write_line(FILE *f, const char *line, const char *end, const ConfigValues *v)
{
    while (line < end) {
        const char *mark = memchr(line, '@', (size_t)(end - line));
        const char *close = mark ? memchr(mark + 1, '@', (size_t)(end - mark - 1)) : NULL;
        fwrite(line, 1, (size_t)((close ? mark : end) - line), f);
        if (close)
            write_mark(f, strf("%.*s", (int)(close - mark - 1), mark + 1), v);
        line = close ? close + 1 : end;
    }
}

const char *template_line(const char *line, const ConfigValues *v)
{
    Text t;
    write_line(text_open(&t), line, line + strlen(line), v);
    return text_close(&t);
}

void template_write(FILE *f, const char *template, const ConfigValues *v, Strs *lines)
{
    const char *value;
    for (const char *end; (end = strchr(template, '\n')); template = end + 1) {
        const char *line = template;
        bool all = true;
        while (*template == '?' || *template == '!')
            all &= wanted(&template, v, &value);
        if (all) {
            write_line(f, template, end, v);
            fputc('\n', f);
            if (lines)
                *PUSH(lines) = strf("%.*s", (int)(end - line), line);
        }
    }
}
