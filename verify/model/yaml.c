/* SPDX-License-Identifier: Apache-2.0
 *
 * yaml.c: a model file as a tree, by libyaml.  Of a map each child has a field, of a list none.
 */
#include "model.h"
#include <string.h>
#include <yaml.h>

enum { DEEPEST = 64 };
typedef struct { yaml_parser_t parser; yaml_event_t e; const char *path; } Yaml;

static void next(Yaml *y)
{
    yaml_event_delete(&y->e);
    if (!yaml_parser_parse(&y->parser, &y->e))
        stop(NOT_READ, "%s:%d: %s", y->path, (int)y->parser.problem_mark.line + 1,
             y->parser.problem ? y->parser.problem : "no YAML");
}

static const char *scalar(Yaml *y)
{
    if (y->e.type != YAML_SCALAR_EVENT)
        stop(NOT_READ, "%s:%d: a key must stand here", y->path, (int)y->e.start_mark.line + 1);
    return name_of((const char *)y->e.data.scalar.value, y->e.data.scalar.length);
}

/* The event of its begin stands here; behind it stands that of its end. */
static Node *tree(Yaml *y, int deep)
{
    Node *n = room(sizeof *n), **last = &n->child;
    bool map = y->e.type == YAML_MAPPING_START_EVENT;
    n->line = (int)y->e.start_mark.line + 1;
    n->kind = N_LIST;
    if (deep > DEEPEST || y->e.type == YAML_ALIAS_EVENT)
        stop(NOT_READ, "%s:%d: an alias, or lists too deep", y->path, n->line);
    if (!map && y->e.type != YAML_SEQUENCE_START_EVENT) {
        n->kind = N_TEXT;
        n->text = scalar(y);
        return n;
    }
    for (next(y); y->e.type != YAML_MAPPING_END_EVENT && y->e.type != YAML_SEQUENCE_END_EVENT; next(y)) {
        const char *field = map ? scalar(y) : NULL;
        if (map)
            next(y);
        *last = tree(y, deep + 1);
        (*last)->field = field;
        last = &(*last)->next;
    }
    return n;
}

Node *yaml_read(const char *path, const char *text, size_t n)
{
    Yaml y = {.path = path};
    Node *got = NULL;
    yaml_parser_initialize(&y.parser) ? (void)0 : stop(NO_MEMORY, "no memory");
    yaml_parser_set_input_string(&y.parser, (const unsigned char *)text, n);
    for (next(&y); y.e.type != YAML_STREAM_END_EVENT && y.e.type != YAML_DOCUMENT_END_EVENT; next(&y))
        if (y.e.type != YAML_STREAM_START_EVENT && y.e.type != YAML_DOCUMENT_START_EVENT)
            got = tree(&y, 0);
    yaml_event_delete(&y.e);
    yaml_parser_delete(&y.parser);
    return got ? got : room(sizeof *got);
}
