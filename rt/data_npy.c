/* SPDX-License-Identifier: Apache-2.0
 *
 * data_npy.c: arrays of NumPy: "\x93NUMPY", version 1.0 or 2.0, length of the header (u16 or u32), a Python
 * dictionary such as {'descr': '<i4', 'fortran_order': False, 'shape': (60, 784), } padded with blanks, then the
 * elements.
 *
 * The dictionary is read as the three keys that NumPy writes, each once, in any order; anything else is refused, and so are
 * bytes behind the rows.  Element types are those of `types`; order is C.
 */
#include <ctype.h>
#include <string.h>
#include "data.h"

/* kind: what is there and not read, from `at`; NULL: a header of another form. */
typedef struct { const char *at, *end, *kind; } Cursor;

static void blanks(Cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

/* Step over a word, with blanks in front; false: something else is there. */
static bool take(Cursor *c, const char *word)
{
    size_t n = strlen(word);
    blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return false;
    c->at += n;
    return true;
}

static bool take_number(Cursor *c, int64_t *x)
{
    blanks(c);
    const char *from = c->at;
    for (*x = 0; c->at < c->end && isdigit((unsigned char)*c->at); c->at++) {
        if (*x > (INT64_MAX - 9) / 10)
            return false;
        *x = *x * 10 + (*c->at - '0');
    }
    return c->at > from;
}

/* (rows, d1, d2 ...): the product of all but the first is the row. */
static bool take_shape(Cursor *c, Array *a)
{
    int64_t d;
    if (!take(c, "(") || !take_number(c, &a->rows))
        return false;
    a->per = 1;
    while (take(c, ",") && !take(c, ")")) {
        if (!take_number(c, &d) || (d && a->per > INT64_MAX / 8 / d))
            return false;
        a->per *= d;
        if (take(c, ")"))
            return true;
    }
    return c->at[-1] == ')';
}

static bool take_type(Cursor *c, Array *a)
{
    static const struct { const char *text; Element kind; } types[] = {
        {"'|u1'", DATA_U8}, {"'|b1'", DATA_U8}, {"'|i1'", DATA_I8}, {"'<u2'", DATA_U16}, {"'<i2'", DATA_I16},
        {"'<u4'", DATA_U32}, {"'<i4'", DATA_I32}, {"'<i8'", DATA_I64}, {"'<f4'", DATA_F32}
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (take(c, types[i].text)) {
            a->kind = types[i].kind;
            return true;
        }
    c->kind = "type";
    return false;
}

static bool take_order(Cursor *c)
{
    bool other = take(c, "True");
    c->kind = other ? "order" : NULL;
    return !other && take(c, "False");
}

static bool take_header(Cursor *c, Array *a)
{
    enum { TYPE = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;
    if (!take(c, "{"))
        return false;
    while (!take(c, "}")) {
        int key = take(c, "'descr'") ? TYPE : take(c, "'fortran_order'") ? ORDER : take(c, "'shape'") ? SHAPE : 0;
        if (!key || seen & key || !take(c, ":"))
            return false;
        seen |= key;
        if (key == TYPE ? !take_type(c, a) : key == ORDER ? !take_order(c) : !take_shape(c, a))
            return false;
        take(c, ",");
    }
    return seen == (TYPE | ORDER | SHAPE);
}

static int refuse(const Cursor *c, const DataFile *f)
{
    const char *at = c->at;
    while (at < c->end && *at != ',' && *at != '}')
        at++;
    if (!c->kind)
        return complain(STATUS_RUN, "data: %s: this header is not understood", f->path);
    if (*c->kind == 'o')
        return complain(STATUS_RUN, "data: %s is in Fortran order, where rows are not together; save "
                        "numpy.ascontiguousarray(a)", f->path);
    return complain(STATUS_RUN, "data: %s: elements of type %.*s are not read; |b1, |u1, |i1, <u2, <i2, <u4, <i4, <i8 and <f4 "
                    "are: save a.astype('<i4') or '<f4'", f->path, (int)(at - c->at), c->at);
}

size_t npy_length(const unsigned char *first)
{
    int version = memcmp(first, "\x93NUMPY", 6) ? 0 : first[6], field = version == 1 ? 2 : 4;
    return version == 1 || version == 2 ? 8 + (size_t)field + (size_t)data_bits(first + 8, field) : 0;
}

int npy_head(const DataFile *f, Array *a)
{
    size_t length = f->size > NPY_FIRST ? npy_length(f->at) : 0;
    if (length == 0)
        return complain(STATUS_RUN, "data: %s is no npy file of version 1 or 2", f->path);
    if (length > f->size)
        return complain(STATUS_RUN, "data: %s is cut short inside its header", f->path);
    Cursor c = {(const char *)f->at + (f->at[6] == 1 ? 10 : 12), (const char *)f->at + length, NULL};
    a->file = f;
    a->offset = length;
    return take_header(&c, a) ? DONE : refuse(&c, f);
}

static int npy_open(Source *s, const DataFile *f)
{
    Array *a = &s->array[f - s->file];
    int status = npy_head(f, a);
    if (status != DONE)
        return status;
    uint64_t room = (f->size - a->offset) / data_width(a->kind);
    if (a->per < 1 || (uint64_t)a->rows > room / (uint64_t)a->per)
        return complain(STATUS_RUN, "data: %s is cut short: %lld rows of %lld elements do not fit in its %zu bytes",
                        f->path, (long long)a->rows, (long long)a->per, f->size);
    size_t rows = (size_t)a->rows * (size_t)a->per * data_width(a->kind);
    if (rows != f->size - a->offset)
        return complain(STATUS_RUN, "data: %s is too long: %zu bytes stand behind its %lld rows", f->path,
                        f->size - a->offset - rows, (long long)a->rows);
    return DONE;
}

const DataFormat data_npy = {"npy", ARRAYS, npy_open, NULL, NULL};
