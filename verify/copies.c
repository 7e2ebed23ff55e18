/* SPDX-License-Identifier: Apache-2.0
 *
 * copies.c: bytes that wait in the host's memory.
 *
 * As with messages, a copy owns its bytes from begin to wait, on both sides.  It brings the bytes that stood there when it
 * began.  A fetch reads places that copies before it have filled, all of which were waited for.
 */
#include "verify.h"
#include <string.h>

enum { MOST_COPIES = 4096 };

static HostCopy *copy_numbered(Machine *m, const Site *s, int64_t number)
{
    if (number < 0 || number >= MOST_COPIES)
        call_fault(m, s, "copy %lld: there are %d", (long long)number, MOST_COPIES);
    while (m->copy.n <= number)
        *ADD(&m->copy) = (HostCopy){0};
    return &m->copy.at[number];
}

void copy_begin(Machine *m, const Site *s, const int *param, bool out)
{
    int64_t lo = arg_place(m, s, 0, param), host = arg_place(m, s, 1, param), bytes = arg_int(m, s, 3, param);
    HostCopy *c = copy_numbered(m, s, arg_int(m, s, 2, param));
    if (c->busy || bytes <= 0)
        call_fault(m, s, c->busy ? "this copy has not been waited for" : "a copy of nothing");
    machine_take(m, s, lo, lo + bytes, !out, out ? "offload" : "fetch");
    host_take(m, s, host, host + bytes, out);
    *ADD(&m->flight) = (Flight){lo, lo + bytes, !out, s->line, out ? "offload" : "fetch"};
    *ADD(&m->host_flight) = (Flight){host, host + bytes, out, s->line, out ? "offload" : "fetch"};
    *c = (HostCopy){true, out, lo, lo + bytes, host, s->line, {0}};
    region_get(out ? &m->region : &m->host, out ? lo : host, (out ? lo : host) + bytes, &c->piece);
    for (int i = 0; i < c->piece.n; i++)
        if (c->piece.at[i].term == 0)
            call_fault(m, s, "nothing has written byte %lld of what is copied", (long long)c->piece.at[i].lo);
}

void copy_end(Machine *m, const Site *s, const int *param)
{
    HostCopy *c = copy_numbered(m, s, arg_int(m, s, 0, param));
    if (!c->busy)
        call_fault(m, s, "this copy has not begun");
    c->busy = false;
    flight_end(&m->flight, c->lo, c->hi, c->line);
    flight_end(&m->host_flight, c->host, c->host + c->hi - c->lo, c->line);
    region_bring(c->out ? &m->host : &m->region, &c->piece, c->out ? c->host - c->lo : c->lo - c->host);
}

void copies_at_rest(const Machine *m)
{
    for (int i = 0; i < m->copy.n; i++)
        if (m->copy.at[i].busy)
            stop(NOT_PROVED, "%s.c:%d: copy %d is never waited for", m->name, m->copy.at[i].line, i);
}
