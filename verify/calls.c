/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.c: the rows of calls.def, read once.
 */
#include "verify.h"
#include <string.h>

typedef struct { RowKind kind; const char *name, *params, *steps; } Given;

#define CALL(name, params) {ROW_CALL, #name, params, NULL},
#define LANES(name, params) {ROW_LANES, #name, params, NULL},
#define SUM(name, params) {ROW_SUM, #name, params, NULL},
#define COPY(name, params) {ROW_COPY, #name, params, NULL},
#define OTHER(name, params) {ROW_OTHER, #name, params, NULL},
#define TEAM(name, params, steps) {ROW_TEAM, #name, params, steps},
#define JOINED(name, params, steps) {ROW_JOINED, #name, params, steps},
static const Given given[] = {
#include "calls.def"
    {0, NULL, NULL, NULL}
};

static struct { Row *at; int n; Map names; } rows;
int rows_real, rows_levels;

static int width_of(char type, int real)
{
    return type == 'r' ? real : type == 'f' || type == 'i' ? 4 : type == 'd' ? 8 : 1;
}

/* "w y:r rows*out" */
static Param param_of(const char *at, size_t n, int real)
{
    Param p = {.mode = *at};
    size_t end = 2;
    p.optional = *at >= 'A' && *at <= 'Z';
    if (p.optional)
        p.mode = (char)(*at - 'A' + 'a');
    if (strchr("lkqg", p.mode))
        p.axis = p.mode, p.mode = 'i';
    while (end < n && at[end] != ':')
        end++;
    p.name = name_of(at + 2, end - 2);
    p.optional |= p.name[0] == 'd' && (p.mode == 'w' || p.mode == 'a');     /* a gradient that nobody wants */
    if (end < n) {
        p.width = width_of(at[end + 1], real);
        p.extent = name_of(at + end + 3, n - end - 3);
    }
    return p;
}

static void read_row(Row *to, const Given *from, int real)
{
    LIST(Param) list = {0};
    for (const char *at = from->params; *at;) {
        const char *end = strstr(at, ", ");
        size_t n = end ? (size_t)(end - at) : strlen(at);
        *ADD(&list) = param_of(at, n, real);
        at += n + strspn(at + n, ", ");
    }
    *to = (Row){from->kind, name_of(from->name, strlen(from->name)), list.n, list.at, from->steps};
}

void rows_open(int real, int64_t blocks)
{
    rows_levels = 0;
    rows.names = (Map){0};
    while (rows_levels < 30 && (int64_t)1 << rows_levels < blocks)
        rows_levels++;
    rows.n = (int)(sizeof given / sizeof *given) - 1;
    rows_real = real;
    rows.at = room(sizeof *rows.at * (size_t)rows.n);
    for (int i = 0; i < rows.n; i++) {
        read_row(&rows.at[i], &given[i], real);
        map_set(&rows.names, rows.at[i].name, i);
    }
}

const Row *row_named(const char *name)
{
    int k = map_at(&rows.names, name_of(name, strlen(name)));
    return k < 0 ? NULL : &rows.at[k];
}

int row_param(const Row *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->param[i].name, name))
            return i;
    return -1;
}
