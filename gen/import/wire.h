/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h: protocol buffers, field by field.
 */
#ifndef WIRE_H
#define WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const unsigned char *at, *end; const char *why; } ProtoWire;   /* why: the first error; NULL none */
/* kind 0, 1 and 5: a number; 2: bytes, as a message of their own */
typedef struct { int number, kind; uint64_t bits; ProtoWire in; } ProtoField;

/* for (Field f; wire_next(&w, &f);): false at the end, or w->why is set. */
bool wire_next(ProtoWire *w, ProtoField *f);
/* The numbers of a repeated field, packed or one by one: calls take for each. */
void wire_each(ProtoWire *w, const ProtoField *f, void (*take)(void *to, uint64_t bits), void *to);
const char *wire_text(const ProtoField *f);     /* a copy with a zero behind it */
float wire_float(uint64_t bits);
#endif
