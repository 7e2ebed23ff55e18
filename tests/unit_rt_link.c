/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_link: the transport between threads.  Five stages exchange messages of many sizes in orders drawn at random,
 * but the same for both ends of a pair, with up to 200 under way; each byte tells where it must arrive.  Between them
 * the stages share records.  Then every way of disagreeing must end the process with the names of both ends.
 */
#include "unit_rt.h"

enum { STAGES = 5, ROUNDS = 60, BURST = 40, LONGEST = 3000 };

typedef struct { Stage st; pthread_t thread; long wrong; unsigned char *in, *out; } Peer;

static unsigned mix(unsigned a, unsigned b, unsigned c)
{
    unsigned x = a * 2654435761u ^ b * 2246822519u ^ c * 3266489917u;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static long size_of(int from, int to, int round, int k)
{
    return (long)(mix((unsigned)(from * 8 + to), (unsigned)round, (unsigned)k) % LONGEST);
}

static unsigned char byte_of(int from, int to, int round, int k, long i)
{
    return (unsigned char)mix((unsigned)(from * 64 + to * 8) + (unsigned)k * 4096u, (unsigned)round, (unsigned)i);
}

/* Requests 0 .. BURST-1 are sends, the rest receives: a burst to the next stage, one from the stage before. */
static void begin_all(Peer *p, int round, int next, int before, bool sends_first)
{
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < BURST; k++) {
            bool send = (pass == 0) == sends_first;
            long n = send ? size_of(p->st.index, next, round, k) : size_of(before, p->st.index, round, k);
            unsigned char *at = (send ? p->out : p->in) + (size_t)k * LONGEST;
            for (long i = 0; send && i < n; i++)
                at[i] = byte_of(p->st.index, next, round, k, i);
            if (send)
                send_begin(&p->st, at, k, next, k, n);
            else
                recv_begin(&p->st, at, BURST + k, before, k, n);
        }
}

static void wait_all(Peer *p, int round, int before)
{
    for (int k = 0; k < BURST; k++) {
        int j = (k * 7 + round) % BURST;            /* waits come in another order than begins */
        transfer_wait(&p->st, BURST + j);
        for (long i = 0; i < size_of(before, p->st.index, round, j); i++)
            p->wrong += p->in[(size_t)j * LONGEST + (size_t)i] != byte_of(before, p->st.index, round, j, i);
        transfer_wait(&p->st, j);
    }
}

static void share(Peer *p, int round)
{
    int mine[3] = {p->st.index, round, (int)mix((unsigned)p->st.index, (unsigned)round, 0)}, all[STAGES][3];
    link_share(&p->st, mine, all, sizeof mine);
    for (int i = 0; i < STAGES; i++)
        p->wrong += all[i][0] != i || all[i][1] != round || all[i][2] != (int)mix((unsigned)i, (unsigned)round, 0);
}

static void *stage(void *at)
{
    Peer *p = at;
    for (int round = 0; round < ROUNDS; round++) {
        int step = 1 + round % (STAGES - 1), next = (p->st.index + step) % STAGES;
        int before = (p->st.index + STAGES - step) % STAGES;
        begin_all(p, round, next, before, mix((unsigned)p->st.index, (unsigned)round, 9) & 1);
        wait_all(p, round, before);
        share(p, round);
    }
    return NULL;
}

static Link *open_link(int stages)
{
    int status = 0;
    return link_open(stages, NULL, NULL, NULL, &status);
}

static void test_exchange(void)
{
    static Peer peer[STAGES];
    Link *l = open_link(STAGES);
    for (int i = 0; i < STAGES; i++) {
        peer[i].st = (Stage){.index = i, .count = STAGES, .link = l};
        peer[i].in = malloc((size_t)BURST * LONGEST);
        peer[i].out = malloc((size_t)BURST * LONGEST);
        pthread_create(&peer[i].thread, NULL, stage, &peer[i]);
    }
    for (int i = 0; i < STAGES; i++) {
        pthread_join(peer[i].thread, NULL);
        check(peer[i].wrong == 0, "stage %d: %ld bytes or records are wrong", i, peer[i].wrong);
        for (int k = 0; k < MAX_REQUESTS; k++)
            check(peer[i].st.request[k] == NULL, "stage %d: request %d stays open", i, k);
        free(peer[i].in);
        free(peer[i].out);
    }
    link_close(l);
}

/* ---- disagreements: one thread plays both stages, since begin never blocks ------------------------------------- */

typedef struct { int send_tag; long send_bytes; int recv_tag; long recv_bytes; } Meeting;

static int meet(void *at)
{
    const Meeting *m = at;
    char a[64], b[64];
    Link *l = open_link(2);
    Stage s = {.index = 0, .count = 2, .link = l}, r = {.index = 1, .count = 2, .link = l};
    recv_begin(&r, b, 0, 0, m->recv_tag, m->recv_bytes);
    send_begin(&s, a, 0, 1, m->send_tag, m->send_bytes);
    return 0;
}

static int misuse(void *at)
{
    char a[64];
    Stage s = {.index = 0, .count = 2, .link = open_link(2)};
    switch (*(int *)at) {
    case 0: transfer_wait(&s, 3); break;
    case 1: send_begin(&s, a, 3, 1, 0, 8); send_begin(&s, a, 3, 1, 1, 8); break;
    case 2: send_begin(&s, a, MAX_REQUESTS, 1, 0, 8); break;
    case 3: recv_begin(&s, a, 0, 2, 0, 8); break;
    case 4: recv_begin(&s, a, 0, 0, 0, 8); break;
    default: recv_begin(&s, a, 0, 1, 0, -8); break;
    }
    return 0;
}

static void test_disagreement(void)
{
    static const char *const says[] = {"was not begun", "begins again", "out of range", "out of range", "out of range",
                                       "out of range"};
    Meeting tag = {5, 16, 6, 16}, size = {5, 16, 5, 32};
    refuse("another tag", meet, &tag, STATUS_RUN, "stage 0 sends tag 5, 16 bytes");
    refuse("another size", meet, &size, STATUS_RUN, "stage 1 expects tag 5, 32 bytes");
    for (int i = 0; i < 6; i++)
        refuse("a misuse", misuse, &i, STATUS_RUN, says[i]);
}

int main(void)
{
    test_exchange();
    test_disagreement();
    return finish("unit_rt_link");
}
