/* SPDX-License-Identifier: Apache-2.0
 *
 * machine.c: is this a machine that a job can run on?  Asked once, before anything else is prepared.
 *
 * The numbers of a job hold for rounding to nearest with small numbers kept, and the kernels as the plan fixed them.  A
 * kernel that was compiled for a newer CPU would end the job without a word, so the extensions that the kernels were compiled
 * for (isa.h) are held against those of the CPU and the system first.  This file and the rest of the runtime are compiled
 * without them.
 *
 * A plan does not know which stages share a machine.  Those that have more threads than it has cores for them are told of.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "isa.h"
#include "link.h"
#include "run.h"

typedef struct { const char *name; unsigned leaf, subleaf, reg, bit, state; } Extension;

#define ROW(macro, leaf, subleaf, reg, bit, state) {#macro, leaf, subleaf, reg, bit, state},
static const Extension extension[] = {ISA_EACH(ROW) {NULL, 0, 0, 0, 0, 0}};

#if defined __x86_64__ || defined __i386__
#include <cpuid.h>

/* Registers that the system saves: XCR0; none where it does not say. */
static unsigned saved_state(void)
{
    enum { OSXSAVE = 1 << 27 };
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

static bool machine_has(const Extension *x)
{
    unsigned r[4];
    return __get_cpuid_count(x->leaf, x->subleaf, &r[0], &r[1], &r[2], &r[3]) && r[x->reg] >> x->bit & 1 &&
           (!x->state || (saved_state() & x->state) == x->state);
}
#elif defined __aarch64__
#include <sys/auxv.h>

static bool machine_has(const Extension *x)
{
    return getauxval(x->leaf) >> x->bit & 1;
}
#else
static bool machine_has(const Extension *x)
{
    (void)x;
    return true;
}
#endif

/* AVX2 of __AVX2__ */
static void add_name(Text *t, const char *macro)
{
    size_t n = strlen(macro);
    while (n > 0 && macro[n - 1] == '_')
        n--;
    size_t from = strspn(macro, "_");
    text_add(t, "%s%.*s", t->n ? ", " : "", (int)(n - from), macro + from);
}

static bool has_avx2(void)
{
    for (int i = 0; extension[i].name; i++)
        if (!strcmp(extension[i].name, "__AVX2__"))
            return machine_has(&extension[i]);
    return false;
}

static int check_instructions(const Job *job)
{
    char list[512];
    Text t = {list, 0, sizeof list};
    bool portable = !strcmp(job->kernels, "portable") || !strcmp(job->kernels, "paced");
    for (int i = 0; extension[i].name; i++)
        if (kernels_isa[i] && !machine_has(&extension[i]))
            add_name(&t, extension[i].name);
    if (t.n == 0)
        return DONE;
    return complain(STATUS_MACHINE, "this machine lacks instructions that the kernels are compiled for: %s; %s", list,
                    portable   ? "run make on it, or make ISA= for every machine of its architecture"
                    : has_avx2() ? "generate the folder again with --set devices.0.isa=x86-64-v3, or another that it has"
                                 : "generate the folder again on it, with a lower devices.0.isa");
}

int machine_check(const Run *run)
{
    volatile float tiny = 0x1p-130f, unit = 1;
    char why[512];
    if (unit + 0x1p-24f != 1 || unit + 0x1.8p-24f == 1 || tiny * 0.5f == 0)
        return complain(STATUS_MACHINE, "rounding is not to nearest, or small numbers are flushed to zero; some "
                        "library or the environment has changed that");
    int status = check_instructions(run->job);
    if (status == DONE && kernels_start(run->job->stage[run->first].threads, why, sizeof why) != 0)
        status = complain(STATUS_MACHINE, "%s", why);
    return status;
}

/* ---- cores ------------------------------------------------------------------------------------------------------- */

typedef struct { char machine[40]; long threads; cpu_set_t cores; } Share;
_Static_assert(sizeof(Share) <= LINK_SHARE, "link_share() takes no more");

/* The same for all containers of one machine. */
static void machine_name(char to[40])
{
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    ssize_t n = file >= 0 ? read(file, to, 39) : -1;
    if (file >= 0)
        close(file);
    if (n <= 0)
        gethostname(to, 39);
}

/* Of the machine that stage i is on, if it is the first one there: are its stages too many? */
static bool crowded(const Share *all, int i, int stages, long *threads, int *cores, int *here)
{
    cpu_set_t sum;
    CPU_ZERO(&sum);
    *threads = *here = 0;
    for (int k = 0; k < stages; k++) {
        bool same = !strcmp(all[k].machine, all[i].machine);
        if (same && k < i)
            return false;
        *threads += same ? all[k].threads : 0;
        *here += same;
        if (same)
            CPU_OR(&sum, &sum, &all[k].cores);
    }
    *cores = CPU_COUNT(&sum);
    return *cores > 0 && *threads > *cores;
}

void machine_cores(Worker *w)
{
    Share mine = {.threads = w->info->threads}, *all = w->board;
    long threads;
    int cores, here;
    machine_name(mine.machine);
    sched_getaffinity(0, sizeof mine.cores, &mine.cores);
    link_share(&w->stage, &mine, all, sizeof mine);
    bool waits = w->info->pace || !strcmp(w->run->job->kernels, "cuda");
    for (int i = 0; i < w->stage.count && w->stage.index == 0 && !waits && !w->run->opt.quiet; i++)
        if (crowded(all, i, w->stage.count, &threads, &cores, &here)) {
            complain(DONE, "stages that share a machine: %d, threads: %ld, cores: %d; steps take longer than predicted",
                     here, threads, cores);
            return;
        }
}
