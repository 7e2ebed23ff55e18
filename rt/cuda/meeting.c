/* SPDX-License-Identifier: Apache-2.0
 *
 * meeting.c: how the processes of a job find each other.
 *
 * Problem.  NCCL wants an identifier that one process makes and all know, and jobs have no daemon.
 *
 * Method.  Number 0 listens on a TCP port.  The others connect, send their numbers and stay connected.  Small facts are
 * exchanged through this star once a step, and it tells at once when a process has ended.  Number 0 listens at
 * DPGEN_RENDEZVOUS=HOST:PORT.  Otherwise it writes host and port to the file DPGEN_RENDEZVOUS, by default .dpgen-JOB in the
 * directory of the start; JOB is the launcher's number for the job.  Clusters have a directory that all hosts see.  The file
 * appears whole (rename) and is gone when all have come.  A launcher without such a number (MPICH's on several hosts) needs
 * DPGEN_RENDEZVOUS, and that is then the job's name as well.
 *
 * Stages that exchange a few bytes in every step have a line of their own (meeting_lines).  Each process says where it is seen:
 * its address towards number 0.  One that is seen as a loopback is on number 0's host.
 *
 * A process that does not come within DPGEN_TIMEOUT seconds (300) is named.  Connections from elsewhere, and of another job,
 * are turned away by a word that both sides know: the name of the job, the count and the port's own number.  There is no
 * encryption: this is for the network of a cluster.
 *
 * Cost: one round trip of 256 bytes a process and step.  Not handled: more than 1,024 processes; a host name that peers
 * cannot resolve (DPGEN_RENDEZVOUS names an address then).
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "link.h"
#include "meeting.h"
#include "run.h"

enum { MOST = 1024, NAME = 512, PAUSE_MS = 50 };
typedef struct { char magic[8], job[64]; int32_t number, size; } Hello;

struct Meeting {
    int number, size;
    int *peer;                  /* number 0: a descriptor of each other; the others: peer[0] */
    pthread_t watcher;
    bool watching;
    _Atomic bool closing, told;
    void (*gone)(void *, int);
    void (*look)(const void *);
    void *with;
};

/* ---- who and where ----------------------------------------------------------------------------------------------------- */

/* All of the text, or -1. */
static long number_in(const char *text)
{
    char *end;
    errno = 0;
    long n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    return n < 0 || *end || errno || n > INT32_MAX ? -1 : n;
}

int meeting_patience(void)
{
    const char *text = getenv("DPGEN_TIMEOUT");
    return text ? (int)number_in(text) : 300;
}

/* What the launcher calls the job: the same in all its processes and in no other job on this file system. */
static void job_name(char to[64])
{
    static const struct { const char *launcher, *job, *task; } known[] = {  /* Slurm's are seen by what it starts, as well */
        {"Open MPI", "PMIX_NAMESPACE", NULL}, {"Open MPI", "OMPI_MCA_ess_base_jobid", NULL},
        {"Slurm", "SLURM_JOB_ID", "SLURM_STEP_ID"}, {"PMI", "PMI_JOBID", NULL}, {"PMI", "SLURM_JOB_ID", NULL},
    };
    const char *launcher = launcher_ranks().launcher, *name = NULL, *task = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known && !name; i++)
        if (!strcmp(known[i].launcher, launcher)) {
            name = getenv(known[i].job);
            task = known[i].task ? getenv(known[i].task) : NULL;
        }
    bool named = name || getenv("DPGEN_RENDEZVOUS");
    int n = named ? snprintf(to, 64, "%s%s%s", name ? name : "", name && task ? "." : "", name && task ? task : "")
                  : snprintf(to, 64, "%ld", (long)getppid());
    for (int i = 0; i < n && i < 63; i++)
        if (to[i] == '/')
            to[i] = '_';
}

typedef struct { char file[NAME], host[NAME], port[16]; bool fixed; double until; char job[64]; } Site;

/* HOST:PORT, with brackets around a HOST that has colons itself. */
static bool set_address(Site *p, const char *where, const char *colon)
{
    int n = (int)(colon - where), bracket = *where == '[' && colon[-1] == ']';
    long port = number_in(colon + 1);
    snprintf(p->host, sizeof p->host, "%.*s", n - 2 * bracket, where + bracket);
    snprintf(p->port, sizeof p->port, "%ld", port);
    p->fixed = true;
    return n > 2 * bracket && port > 0 && port < 65536;
}

static int place_of(Site *p)
{
    const char *where = getenv("DPGEN_RENDEZVOUS"), *patience = getenv("DPGEN_TIMEOUT");
    const char *colon = where && !strchr(where, '/') ? strrchr(where, ':') : NULL;
    *p = (Site){.until = seconds() + meeting_patience()};
    job_name(p->job);
    if (patience && number_in(patience) <= 0)
        return complain(STATUS_USAGE, "DPGEN_TIMEOUT is %s; it wants a number of seconds, 1 or more", patience);
    if (where && (!*where || strlen(where) >= NAME || (colon && !set_address(p, where, colon))))
        return complain(STATUS_USAGE, "DPGEN_RENDEZVOUS is %s; it wants HOST:PORT, or a file (with a / in its name if it has "
                        "a colon)", *where ? where : "empty");
    if (!colon)
        snprintf(p->file, sizeof p->file, "%s%s", where ? where : ".dpgen-", where ? "" : p->job);
    return DONE;
}

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- bytes ----------------------------------------------------------------------------------------------------- */

static bool send_bytes(int to, const void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = send(to, (const char *)data + done, n - done, MSG_NOSIGNAL);
        if (k <= 0 && errno != EINTR)
            return false;
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

static bool take_bytes(int from, void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = recv(from, (char *)data + done, n - done, 0);
        if (k == 0 || (k < 0 && errno != EINTR))
            return false;
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

static Hello hello(const Site *p, int number, int size)
{
    Hello h = {.magic = "dpgen-1", .number = number, .size = size};
    memcpy(h.job, p->job, sizeof h.job);
    return h;
}

static void set_options(int s)
{
    int on = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* A call that takes from this connection ends by then; 0: whenever. */
static void set_patience(int s, double left)
{
    struct timeval t = {(time_t)left, (suseconds_t)((left - (double)(time_t)left) * 1e6)};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

/* ---- number 0 ------------------------------------------------------------------------------------------------------------ */

/* The port; -1: said in errno. */
static int listen_as(int s, struct sockaddr *at, socklen_t n)
{
    int on = 1, off = 0;
    struct sockaddr_in6 got;
    socklen_t room = sizeof got;
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->sa_family == AF_INET6)
        setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);     /* it takes IPv4 as well */
    if (bind(s, at, n) != 0 || listen(s, MOST) != 0 || getsockname(s, (struct sockaddr *)&got, &room) != 0)
        return -1;
    return ntohs(got.sin6_port);        /* where sin_port is */
}

static int listen_at(Site *p)
{
    uint16_t want = htons((uint16_t)(p->fixed ? atoi(p->port) : 0));
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = want};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = want};
    int s = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = s >= 0 ? listen_as(s, (struct sockaddr *)&six, sizeof six) : -1;
    if (port < 0) {                     /* a host without IPv6 */
        if (s >= 0)
            close(s);
        s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        port = s >= 0 ? listen_as(s, (struct sockaddr *)&four, sizeof four) : -1;
    }
    if (port < 0 && s >= 0)
        close(s);
    snprintf(p->port, sizeof p->port, "%d", port);
    return port < 0 ? -1 : s;
}

static int publish(const Site *p)
{
    char task[NAME + 8], line[2 * NAME], host[NAME] = "localhost";
    gethostname(host, sizeof host - 1);
    snprintf(task, sizeof task, "%s.part", p->file);
    int n = snprintf(line, sizeof line, "%s %s\n", host, p->port);
    FILE *f = fopen(task, "w");
    bool good = f && fwrite(line, 1, (size_t)n, f) == (size_t)n;
    if (f)
        good = fclose(f) == 0 && good;
    if (good && rename(task, p->file) == 0)
        return DONE;
    int why = errno;
    unlink(task);
    return complain(STATUS_RUN, "cannot write the meeting place %s: %s; name a file in a directory that all hosts share with "
                    "DPGEN_RENDEZVOUS=FILE, or an address with DPGEN_RENDEZVOUS=HOST:PORT", p->file, strerror(why));
}

static void name_missing(const Meeting *m)
{
    char list[256];
    int n = 0;
    for (int i = 1; i < m->size && n < (int)sizeof list - 8; i++)
        if (m->peer[i] < 0)
            n += snprintf(list + n, sizeof list - (size_t)n, "%s%d", n ? ", " : "", i);
    complain(STATUS_RUN, "stage %s of %d did not come within %d s; is it started, and does it reach this host?  DPGEN_TIMEOUT "
             "says how long to wait", list, m->size, meeting_patience());
}

static void welcome(Meeting *m, const Site *p, int s)
{
    Hello h, want;
    set_patience(s, 1);             /* who has connected says a few bytes at once */
    bool good = take_bytes(s, &h, sizeof h) && h.number > 0 && h.number < m->size && m->peer[h.number] < 0;
    want = hello(p, good ? h.number : 0, m->size);
    if (!good || memcmp(&h, &want, sizeof h) != 0 || !send_bytes(s, &want, sizeof want)) {
        close(s);
        return;
    }
    set_patience(s, 0);
    set_options(s);
    m->peer[h.number] = s;
}

static int gather(Meeting *m, Site *p)
{
    int door = listen_at(p), missing = m->size - 1;
    if (door < 0)
        return complain(STATUS_RUN, "cannot listen for the other stages on port %s: %s", p->fixed ? p->port : "any",
                        strerror(errno));
    int status = p->fixed ? DONE : publish(p);
    while (status == DONE && missing > 0 && seconds() < p->until) {
        struct pollfd wait = {door, POLLIN, 0};
        int s = poll(&wait, 1, PAUSE_MS) > 0 ? accept(door, NULL, NULL) : -1;
        if (s >= 0)
            welcome(m, p, s);
        missing = 0;
        for (int i = 1; i < m->size; i++)
            missing += m->peer[i] < 0;
    }
    if (!p->fixed && status == DONE)
        unlink(p->file);
    close(door);
    if (status == DONE && missing > 0) {
        name_missing(m);
        status = STATUS_RUN;
    }
    return status;
}

/* ---- the others ---------------------------------------------------------------------------------------------------------- */

static bool find(Site *p)
{
    char line[2 * NAME];
    if (p->fixed)
        return true;
    FILE *f = fopen(p->file, "r");
    bool good = f && fgets(line, sizeof line, f) && sscanf(line, "%511s %15s", p->host, p->port) == 2;
    if (f)
        fclose(f);
    return good;
}

static int dial(const Site *p)
{
    struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char self[NAME] = "";
    int s = -1;
    gethostname(self, sizeof self - 1);     /* a host need not be able to resolve its own name: NULL is its loopback */
    if (getaddrinfo(!strcmp(self, p->host) ? NULL : p->host, p->port, &want, &list) != 0)
        return -1;
    for (struct addrinfo *a = list; a && s < 0; a = a->ai_next) {
        s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) != 0) {
            close(s);
            s = -1;
        }
    }
    freeaddrinfo(list);
    return s;
}

static bool introduce(Meeting *m, const Site *p, int s)
{
    Hello h = hello(p, m->number, m->size), back;
    double left = p->until - seconds();
    set_patience(s, left > 0.01 ? left : 0.01);     /* as long as number 0 may need: what has come to it is not sent twice */
    if (!send_bytes(s, &h, sizeof h) || !take_bytes(s, &back, sizeof back) || memcmp(&h, &back, sizeof h) != 0) {
        close(s);
        return false;
    }
    set_patience(s, 0);
    set_options(s);
    m->peer[0] = s;
    return true;
}

static int come(Meeting *m, Site *p)
{
    bool found = false;
    for (; seconds() < p->until; pause_ms(PAUSE_MS)) {
        int s = find(p) ? dial(p) : -1;
        found |= s >= 0;
        if (s >= 0 && introduce(m, p, s))
            return DONE;
    }
    const char *place = p->fixed ? p->host : p->file;
    if (found)
        return complain(STATUS_RUN, "stage %d was turned away, or not answered, at %s: another job meets there, or something "
                        "else listens; wait for its end, or give each its own DPGEN_RENDEZVOUS", m->number, place);
    return complain(STATUS_RUN, "stage %d of this job did not find stage 0 at %s within DPGEN_TIMEOUT; is it started, and is "
                    "that place seen by all hosts?", m->number, place);
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

Meeting *meeting_open(int number, int size, int *status)
{
    Meeting *m = calloc(1, sizeof *m);
    Site p;
    if (m)
        m->peer = malloc(sizeof *m->peer * (size_t)size);
    if (!m || !m->peer || size > MOST) {
        *status = complain(STATUS_RUN, "no room for a meeting of %d stages", size);
        return NULL;
    }
    m->number = number;
    m->size = size;
    for (int i = 0; i < size; i++)
        m->peer[i] = -1;
    *status = place_of(&p);
    if (*status == DONE && size > 1)
        *status = number == 0 ? gather(m, &p) : come(m, &p);
    if (*status == DONE)
        return m;
    meeting_close(m);
    return NULL;
}

/* Whoever notices first says it, and nobody goes on. */
static void tell(Meeting *m, int who)
{
    if (!atomic_exchange(&m->told, true))
        m->gone(m->with, who);
    for (;;)
        pause_ms(PAUSE_MS);
}

static bool lost(Meeting *m, int who)
{
    if (m->watching && !atomic_load(&m->closing))
        tell(m, who);
    return false;
}

bool meeting_share(Meeting *m, const void *mine, void *all, size_t bytes)
{
    char *board = all;
    memcpy(board + (size_t)m->number * bytes, mine, bytes);
    if (m->number > 0)
        return (send_bytes(m->peer[0], mine, bytes) && take_bytes(m->peer[0], all, bytes * (size_t)m->size)) || lost(m, 0);
    for (int i = 1; i < m->size; i++)
        if (!take_bytes(m->peer[i], board + (size_t)i * bytes, bytes))
            return lost(m, i);
    for (int i = 1; i < m->size; i++)
        if (!send_bytes(m->peer[i], all, bytes * (size_t)m->size))
            return lost(m, i);
    return true;
}

/* ---- lines -------------------------------------------------------------------------------------------------------------- */

typedef struct { struct sockaddr_storage at; int32_t port; } Door;
_Static_assert(sizeof(Door) <= MEETING_SHARE, "meeting_share() takes no more");

static bool is_loopback(const struct sockaddr_storage *at)
{
    const struct sockaddr_in *four = (const void *)at;
    const struct sockaddr_in6 *six = (const void *)at;
    const unsigned char *b = six->sin6_addr.s6_addr;
    if (at->ss_family == AF_INET)
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    return at->ss_family != AF_INET6 || IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) || (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)
        && b[12] == 127);
}

/* Where this process reaches `to`. */
static struct sockaddr_storage reach(const Meeting *m, const Door *all, int to)
{
    struct sockaddr_storage at = all[to].at;
    socklen_t n = sizeof at;
    if (is_loopback(&at) && m->number > 0)
        getpeername(m->peer[0], (struct sockaddr *)&at, &n);
    if (is_loopback(&at) && m->number == 0)
        *(struct sockaddr_in *)(void *)&at = (struct sockaddr_in){.sin_family = AF_INET,
                                                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ((struct sockaddr_in *)(void *)&at)->sin_port = htons((uint16_t)all[to].port);     /* sin6_port is there, too */
    return at;
}

/* A line to the stage; -1: it does not answer. */
static int call(const Meeting *m, const Site *p, const Door *all, int to, int pair)
{
    struct sockaddr_storage at = reach(m, all, to);
    Hello h = hello(p, m->number, pair);
    int s = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = at.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (s >= 0 && connect(s, (struct sockaddr *)&at, n) == 0 && send_bytes(s, &h, sizeof h)) {
        set_options(s);
        return s;
    }
    if (s >= 0)
        close(s);
    return -1;
}

/* Whoever is at the door, if a line of his is missing. */
static bool answer(const Meeting *m, const Site *p, int s, const int *pair, int pairs, int *line)
{
    Hello h, want;
    set_patience(s, 1);
    bool good = take_bytes(s, &h, sizeof h) && h.size >= 0 && h.size < pairs && line[h.size] < 0;
    want = hello(p, good ? pair[2 * h.size] : 0, good ? h.size : 0);
    if (!good || memcmp(&h, &want, sizeof h) != 0 || pair[2 * h.size + 1] != m->number) {
        close(s);
        return false;
    }
    set_patience(s, 0);
    set_options(s);
    line[h.size] = s;
    return true;
}

static int open_lines(Meeting *m, Site *p, int door, const Door *all, const int *pair, const char *talk, int pairs, int *line)
{
    int missing = 0;
    for (int i = 0; i < pairs; i++) {
        line[i] = talk[i] && pair[2 * i] == m->number ? call(m, p, all, pair[2 * i + 1], i) : -1;
        if (talk[i] && pair[2 * i] == m->number && line[i] < 0)
            return complain(STATUS_RUN, "stage %d does not reach stage %d: %s", m->number, pair[2 * i + 1], strerror(errno));
        missing += talk[i] && pair[2 * i + 1] == m->number;
    }
    while (missing > 0 && seconds() < p->until) {
        struct pollfd wait = {door, POLLIN, 0};
        int s = poll(&wait, 1, PAUSE_MS) > 0 ? accept(door, NULL, NULL) : -1;
        missing -= s >= 0 && answer(m, p, s, pair, pairs, line);
    }
    return missing ? complain(STATUS_RUN, "stage %d was not reached by all others", m->number) : DONE;
}

int meeting_lines(Meeting *m, const int *pair, const char *talk, int pairs, int *line)
{
    Site p = {.until = seconds() + meeting_patience()};
    Door mine = {.port = 0}, *all = calloc((size_t)m->size, sizeof *all);
    socklen_t n = sizeof mine.at;
    int door = listen_at(&p), status = STATUS_RUN;
    job_name(p.job);
    mine.port = atoi(p.port);
    if (m->number > 0)
        getsockname(m->peer[0], (struct sockaddr *)&mine.at, &n);
    if (!all || door < 0)
        complain(STATUS_RUN, "stage %d cannot listen for the others: %s", m->number, strerror(errno));
    else if (meeting_share(m, &mine, all, sizeof mine))
        status = open_lines(m, &p, door, all, pair, talk, pairs, line);
    if (door >= 0)
        close(door);
    free(all);
    return status;
}

/* ---- who is gone -------------------------------------------------------------------------------------------------------- */

bool meeting_pass(Meeting *m, int line, int other, void *data, size_t bytes, bool sending)
{
    return (sending ? send_bytes(line, data, bytes) : take_bytes(line, data, bytes)) || lost(m, other);
}

/* Nothing is read here: only the end of a connection is looked for. */
static void *watch(void *at)
{
    Meeting *m = at;
    int first = m->number == 0 ? 1 : 0, end = m->number == 0 ? m->size : 1;
    while (!atomic_load(&m->closing)) {
        for (int i = first; i < end && !atomic_load(&m->closing); i++) {
            struct pollfd p = {m->peer[i], POLLRDHUP, 0};
            if (poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR) && !atomic_load(&m->closing))
                tell(m, i);
        }
        m->look(m->with);
        pause_ms(4 * PAUSE_MS);
    }
    return NULL;
}

int meeting_watch(Meeting *m, void (*gone)(void *, int), void (*look)(const void *), void *with)
{
    m->gone = gone;
    m->look = look;
    m->with = with;
    m->watching = m->size > 1 && pthread_create(&m->watcher, NULL, watch, m) == 0;
    return m->watching || m->size == 1;
}

void meeting_close(Meeting *m)
{
    atomic_store(&m->closing, true);
    if (m->watching) {
        pthread_join(m->watcher, NULL);
        meeting_share(m, &(char){0}, (char[MOST]){0}, 1);       /* nobody goes while somebody watches */
    }
    for (int i = 0; i < m->size; i++)
        if (m->peer[i] >= 0)
            close(m->peer[i]);
    free(m->peer);
    free(m);
}
