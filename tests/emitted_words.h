/* SPDX-License-Identifier: Apache-2.0
 *
 * emitted_words.h: the words of the emitted language, one after the other, and what it takes to expect one.  A part of
 * emitted.c, whose Reader it reads from.
 */
static void blank(Reader *r)
{
    r->notes = 0;
    for (;; r->p++) {
        if (*r->p == '\n') {
            r->line++;
            r->first = 1;
        } else if (r->p[0] == '/' && r->p[1] == '*') {
            const char *end = strstr(r->p + 2, "*/");
            if (!end) {
                bad(r, r->line, "comment without an end");
                longjmp(r->out, 1);
            }
            if (r->notes++ == 0)
                r->note = (Name){r->p + 2, (int)(end - r->p) - 2};
            for (; r->p < end + 1; r->p++)
                r->line += *r->p == '\n';
        } else if (*r->p != ' ') {
            return;
        }
    }
}

static int number(const char *p, int *n)
{
    const char *s = p;
    s += *s == '-';
    int hex = s[0] == '0' && s[1] == 'x', digits = 0;
    for (s += 2 * hex; hex ? isxdigit((unsigned char)*s) : isdigit((unsigned char)*s); s++)
        digits++;
    int is_float = hex && digits && (*s == '.' || *s == 'p');
    if (is_float) {
        if (*s == '.')
            for (s++; isxdigit((unsigned char)*s); )
                s++;
        s += *s == 'p';
        s += *s == '+' || *s == '-';
        is_float = isdigit((unsigned char)*s) != 0;
        while (isdigit((unsigned char)*s))
            s++;
        is_float = is_float && *s++ == 'f';
        digits *= is_float;
    }
    int large = !hex && digits && *s == 'L' && s[1] == '*';
    s += large;
    int octal = !hex && digits > 1 && p[*p == '-'] == '0';
    *n = (int)(s - p);
    int goes_on = isalnum((unsigned char)*s) || *s == '_' || *s == '.';
    return !digits || octal || goes_on ? OTHER : is_float ? FLOAT : INTEGER;
}

static void next(Reader *r)
{
    if (r->in_call && r->notes)
        bad(r, r->line, "a comment inside a call that is no label");
    r->first = r->token == END;
    blank(r);
    r->at = r->line;
    r->text = (Name){r->p, 1};
    if (!*r->p) {
        r->token = END;
        r->text.n = 0;
    } else if (isalpha((unsigned char)*r->p) || *r->p == '_') {
        while (isalnum((unsigned char)r->p[r->text.n]) || r->p[r->text.n] == '_')
            r->text.n++;
        r->token = NAME;
    } else if (isdigit((unsigned char)*r->p) || *r->p == '-') {
        r->token = number(r->p, &r->text.n);
    } else {
        r->token = OTHER;
    }
    r->p += r->text.n;
}

static void stop(Reader *r, const char *wanted)
{
    bad(r, r->at, "%s expected, not '%.*s'", wanted, r->text.n, r->text.at);
    longjmp(r->out, 1);
}

static int same(Name a, Name b) { return a.n == b.n && (a.n == 0 || !memcmp(a.at, b.at, (size_t)a.n)); }
static int is(const Reader *r, const char *text) { return same(r->text, (Name){text, (int)strlen(text)}); }

/* The comment in front of the token, without blanks at its ends. */
static Name take_note(Reader *r)
{
    Name n = r->notes == 1 ? r->note : (Name){"", 0};
    r->notes = r->notes > 1 ? r->notes : 0;
    for (; n.n && *n.at == ' '; n.n--)
        n.at++;
    while (n.n && n.at[n.n - 1] == ' ')
        n.n--;
    return n;
}

static int take(Reader *r, const char *text)
{
    if (!is(r, text))
        return 0;
    next(r);
    return 1;
}

static void want(Reader *r, const char *text)
{
    if (!take(r, text))
        stop(r, text);
}

static Name name(Reader *r)
{
    Name n = r->text;
    if (r->token != NAME)
        stop(r, "name");
    next(r);
    return n;
}

/* "TEXT" on one line; its length with both quotes. */
static Name string(Reader *r)
{
    Name n = {r->text.at, 1};
    if (*n.at != '"')
        stop(r, "a text");
    while (n.at[n.n] && n.at[n.n] != '"' && n.at[n.n] != '\n')
        n.n += 1 + (n.at[n.n] == '\\');
    if (n.at[n.n++] != '"')
        stop(r, "the end of a text");
    r->p = n.at + n.n;
    next(r);
    return n;
}

static int64_t integer(Reader *r)
{
    if (r->token != INTEGER)
        stop(r, "integer");
    int64_t v = strtoll(r->text.at, NULL, 0);
    next(r);
    return v;
}
