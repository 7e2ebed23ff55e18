/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.c: a file that is cut while it is mapped.
 *
 * A page behind the end of a file raises SIGBUS, and a process would end without a word.  The handler finds the file by the
 * address, writes a line that was made when the file was mapped, and ends the process.  It calls write() and _exit() alone.
 * An address of no such file goes to the handler that was there before.
 */
#include "mapped.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 1024, FAILED = 1 };
typedef struct Map Map;
struct Map {
    const unsigned char *_Atomic at;        /* NULL: free for another file */
    size_t size, n;
    Map *next;
    char line[LINE];
};
static Map *_Atomic first;
static struct sigaction before;
static const char *name;

static void on_bus(int number, siginfo_t *info, void *context)
{
    const unsigned char *where = info->si_addr;
    (void)context;
    for (const Map *m = atomic_load(&first); m; m = m->next) {
        const unsigned char *at = atomic_load(&m->at);
        if (at && where >= at && (size_t)(where - at) < m->size)
            _exit(write(STDERR_FILENO, m->line, m->n) < 0 ? FAILED : FAILED);
    }
    sigaction(number, &before, NULL);       /* the access is made again, and meets what was there before */
}

void mapped_watch(const char *program)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_sigaction = on_bus;
    a.sa_flags = SA_SIGINFO;
    if (!name)
        sigaction(SIGBUS, &a, &before);
    name = program;
}

void mapped_add(const void *at, size_t n, const char *what, const char *path)
{
    Map *m = atomic_load(&first);
    while (m && atomic_load(&m->at))
        m = m->next;
    bool fresh = !m;
    if (!name || (fresh && !(m = calloc(1, sizeof *m))))
        return;
    int k = snprintf(m->line, LINE - 1, "%s: %s %s shrank while it was read: it must keep its bytes until the end", name, what,
                     path);
    m->n = k < LINE - 1 ? (size_t)k : LINE - 2;
    for (size_t i = 0; i < m->n; i++)
        if ((unsigned char)m->line[i] < ' ' || m->line[i] == 127)
            m->line[i] = '?';
    m->line[m->n++] = '\n';
    m->size = n;
    atomic_store(&m->at, at);
    if (fresh) {
        m->next = atomic_load(&first);
        atomic_store(&first, m);
    }
}

void mapped_drop(const void *at)
{
    for (Map *m = atomic_load(&first); m; m = m->next)
        if (atomic_load(&m->at) == at)
            atomic_store(&m->at, NULL);
}
