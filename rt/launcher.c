/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.c: what the launcher of several processes says of this one, in its environment.
 *
 * The first row counts that has set its names, so that of two launchers the one nearer to the process does.  mpirun starts its
 * helpers by srun, and then what they start sees Slurm's names as well, which are those of the helpers.  MPI_LOCALRANKID tells
 * Hydra (MPICH, Intel MPI) from srun --mpi=pmi2, which has no number on the host under that name.  SLURM_NTASKS stands in
 * every batch script, where one process is right; SLURM_STEP_NUM_TASKS is set by srun alone.
 */
#include <stdlib.h>
#include "link.h"

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

Ranks launcher_ranks(void)
{
    static const struct { const char *name, *size, *rank, *local, *must; } known[] = {
        {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK"},
        {"PMI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALRANKID"},
        {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_PROCID"},
        {"PMI", "PMI_SIZE", "PMI_RANK", "PMI_RANK", "PMI_RANK"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (getenv(known[i].size) && getenv(known[i].rank) && getenv(known[i].must)) {
            int rank = number_of(known[i].rank, 0);
            return (Ranks){rank, number_of(known[i].size, 1), number_of(known[i].local, rank), known[i].name, known[i].size};
        }
    return (Ranks){0, 1, 0, "no launcher", NULL};
}
