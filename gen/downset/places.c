/* SPDX-License-Identifier: Apache-2.0
 *
 * places.c: the rows of devices that a pipeline may have.
 *
 * Problem: stages come one after the other, and each takes the next device.  What matters of the devices before is which are
 * used up, and which one sends.  So a place is a multiset of kinds with a last kind, as in Y. Hu et al., PipeEdge, 2022.  Where
 * device i does stage i, the places are a row.
 *
 * Cost: for kinds of n1, n2, ... devices (n1 + 1) (n2 + 1) ... times kinds, at most MOST_PLACES.  More are none.
 */
#include "downset.h"

Ns *places_least(const Dag *d)
{
    Ns *least = alloc(sizeof *least * ((size_t)d->n + 1));
    for (int i = 0; i < d->n; i++) {
        least[i] = d->time[0][i];
        for (int k = 1; k < d->classes; k++)
            least[i] = d->time[k][i] < least[i] ? d->time[k][i] : least[i];
    }
    return least;
}

Ns places_sent(const Dag *d, const ForeignPlace *from, const ForeignPlace *to, Bytes leaves)
{
    int other = from->device == to->device ? to->twin : to->device;
    return d->wire ? cost_wire(d->wire, from->device, other, d->ways * leaves) : 0;
}

ForeignPlaces places_row(const int *class, const Bytes *room, int least, int most)
{
    ForeignPlaces p = {.least = least, .most = most};
    *PUSH(&p.at) = (ForeignPlace){.device = -1};
    for (int d = 0; d < most; d++) {
        ForeignPlace *x = PUSH(&p.at);
        *x = (ForeignPlace){.device = d, .twin = d, .class = class[d], .used = d + 1, .room = room ? room[d] : INT64_MAX};
        *PUSH(&x->before) = d;
    }
    return p;
}

/* first, second: devices of a kind; size: of the numbers of a multiset, before this kind */
typedef struct { int n, *first, *second, *count, *size; } PlaceKinds;

static PlaceKinds count_kinds(const int *kind, int n, int most)
{
    size_t bytes = sizeof(int) * ((size_t)n + 1);
    PlaceKinds k = {.first = alloc(bytes), .second = alloc(bytes), .count = alloc(bytes), .size = alloc(bytes)};
    for (int d = 0; d < n; d++) {
        k.n = kind[d] >= k.n ? kind[d] + 1 : k.n;
        k.second[kind[d]] = k.count[kind[d]] < 2 ? d : k.second[kind[d]];
        k.first[kind[d]] = k.count[kind[d]]++ ? k.first[kind[d]] : d;
    }
    k.size[0] = 1;
    for (int i = 0; i < k.n; i++) {
        k.count[i] = k.count[i] > most ? most : k.count[i];
        k.size[i + 1] = k.size[i] * (k.count[i] + 1);
        k.size[i + 1] = k.size[i + 1] > MOST_PLACES ? MOST_PLACES + 1 : k.size[i + 1];
    }
    return k;
}

ForeignPlaces places_free(const int *kind, const int *class, const Bytes *room, int n, int least, int most)
{
    ForeignPlaces p = {.least = least, .most = most};
    PlaceKinds k = count_kinds(kind, n, most);
    if (k.size[k.n] > MOST_PLACES / k.n)
        return p;
    int sets = k.size[k.n], *place = alloc(sizeof(int) * (size_t)(sets * k.n));     /* [set][kind of the last]; 0: none */
    *PUSH(&p.at) = (ForeignPlace){.device = -1};
    for (int set = 1; set < sets; set++) {
        int used = 0;
        for (int i = 0; i < k.n; i++)
            used += set / k.size[i] % (k.count[i] + 1);
        for (int i = 0; i < k.n && used <= most; i++) {
            int was = set - k.size[i];
            if (set / k.size[i] % (k.count[i] + 1) == 0)
                continue;
            place[set * k.n + i] = p.at.n;
            ForeignPlace *x = PUSH(&p.at);
            *x = (ForeignPlace){.device = k.first[i], .twin = k.second[i], .class = class[k.first[i]], .used = used,
                         .room = room ? room[k.first[i]] : INT64_MAX};
            if (was == 0)
                *PUSH(&x->before) = 0;
            for (int last = 0; was > 0 && last < k.n; last++)
                if (place[was * k.n + last])
                    *PUSH(&x->before) = place[was * k.n + last];
        }
    }
    return p;
}
