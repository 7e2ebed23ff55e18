/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.c: a reader of protocol buffers, without their compiler.
 *
 * A message is a run of fields: a number, a kind, and what the kind says.  Numbers are in groups of seven bits, low first.  A
 * length is checked against what is left, so nothing is read beyond a message.  Groups, kinds 3 and 4, are refused.
 */
#include "net.h"

static bool fault(ProtoWire *w, const char *why)
{
    if (!w->why)
        w->why = why;
    return false;
}

static bool varint(ProtoWire *w, uint64_t *x)
{
    *x = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return fault(w, "a number is cut short");
        unsigned char c = *w->at++;
        if (shift < 64)
            *x |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return true;
    }
    return fault(w, "a number of more than 64 bits");
}

static bool fixed(ProtoWire *w, int bytes, uint64_t *x)
{
    *x = 0;
    if (w->end - w->at < bytes)
        return fault(w, "a number is cut short");
    *x = number_little(w->at, bytes);
    w->at += bytes;
    return true;
}

bool wire_next(ProtoWire *w, ProtoField *f)
{
    uint64_t key, n;
    if (w->why || w->at == w->end || !varint(w, &key))
        return false;
    *f = (ProtoField){.number = (int)(key >> 3 & 0x1fffffff), .kind = (int)(key & 7)};
    if (f->number == 0 || f->kind == 3 || f->kind == 4 || f->kind > 5)
        return fault(w, "a field of an unknown kind");
    if (f->kind == 0)
        return varint(w, &f->bits);
    if (f->kind != 2)
        return fixed(w, f->kind == 1 ? 8 : 4, &f->bits);
    if (!varint(w, &n))
        return false;
    if (n > (uint64_t)(w->end - w->at))
        return fault(w, "a field is longer than what is left");
    f->in = (ProtoWire){w->at, w->at + n, NULL};
    w->at += n;
    return true;
}

void wire_each(ProtoWire *w, const ProtoField *f, void (*take)(void *to, uint64_t bits), void *to)
{
    uint64_t x;
    if (f->kind != 2) {
        take(to, f->bits);
        return;
    }
    for (ProtoWire in = f->in; in.at < in.end;) {
        if (!varint(&in, &x)) {
            fault(w, in.why);
            return;
        }
        take(to, x);
    }
}

const char *wire_text(const ProtoField *f)
{
    size_t n = f->kind == 2 ? (size_t)(f->in.end - f->in.at) : 0;
    char *to = alloc(n + 1);
    return n ? memcpy(to, f->in.at, n) : to;
}

float wire_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, sizeof f);
    return f;
}
