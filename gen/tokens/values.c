/* SPDX-License-Identifier: Apache-2.0
 *
 * values.c: values of chat templates, and JSON as such values.
 */
#include "render.h"
#include "rt/tokens/json_part.h"

Value value_string(const char *s)
{
    return (Value){.kind = STRING, .s = s};
}

const Value *value_member(const Value *map, const char *key)
{
    for (int i = 0; map->kind == MAPPED && i < map->key.n; i++)
        if (!strcmp(map->key.at[i], key))
            return &map->at.at[i];
    return NULL;
}

void value_put(Value *map, const char *key, Value v)
{
    for (int i = 0; i < map->key.n; i++)
        if (!strcmp(map->key.at[i], key)) {
            map->at.at[i] = v;
            return;
        }
    *PUSH(&map->key) = key;
    *PUSH(&map->at) = v;
}

bool value_true(const Value *v)
{
    return v->kind == STRING ? *v->s : v->kind == LISTED || v->kind == MAPPED ? v->at.n : v->i;
}

bool value_same(const Value *a, const Value *b)
{
    bool numbers = (a->kind == BOOLEAN || a->kind == WHOLE) && (b->kind == BOOLEAN || b->kind == WHOLE);
    if (a->kind != b->kind && !numbers)
        return false;
    if (a->kind == STRING)
        return !strcmp(a->s, b->s);
    if (a->kind != LISTED && a->kind != MAPPED)
        return a->i == b->i;
    bool same = a->at.n == b->at.n;
    for (int i = 0; same && i < a->at.n; i++) {
        const Value *other = a->kind == LISTED ? &b->at.at[i] : value_member(b, a->key.at[i]);
        same = other && value_same(&a->at.at[i], other);
    }
    return same;
}

static Value part(const char *path, JsonPart p, char *room)
{
    Json j = json_open(p.at, p.n);
    Value v = {0};
    char c = p.n ? *p.at : 0;
    if (c == '"' && json_string(&j, room, p.n + 1))
        v = value_string(strf("%s", room));
    else if (c == '[' || c == '{') {
        v.kind = c == '[' ? LISTED : MAPPED;
        for (bool first = true; json_member(&j, &first, c == '[' ? NULL : room, p.n + 1);) {
            if (c == '{')
                *PUSH(&v.key) = strf("%s", room);
            JsonPart inner = json_value(&j);
            if (j.why)
                break;
            *PUSH(&v.at) = part(path, inner, room);
        }
    } else if (c == 't' || c == 'f') {
        v = (Value){.kind = BOOLEAN, .i = c == 't'};
    } else if (c == 'n') {
        v.kind = NONE;
    } else if (p.n && !memchr(p.at, '.', p.n) && !memchr(p.at, 'e', p.n)) {
        v = (Value){.kind = WHOLE, .i = strtoll(strf("%.*s", (int)p.n, p.at), NULL, 10)};
    } else if (p.n) {
        v = value_string(strf("%.*s", (int)p.n, p.at));       /* a number with a fraction, as it stands */
    }
    if (j.why)
        fail(EXIT_MODEL, "%s: this is no JSON: %s", path, j.why);
    return v;
}

Value value_json(const char *path, const char *text, size_t n)
{
    Json j = json_open(text, n);
    JsonPart p = json_value(&j);
    if (j.why || !json_end(&j))
        fail(EXIT_MODEL, "%s: this is no JSON: %s", path, j.why ? j.why : "more text after the end");
    return part(path, p, alloc(n + 1));
}
