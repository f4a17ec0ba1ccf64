// launch.c: see launch.h.
#include "team/launch.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

// The environment variables that launchers set for the processes that they start. The order of this
// list matters, because Open MPI's mpirun also sets PMIX_RANK, and srun sets its variables in
// addition to those of the MPI library. SLURM_NTASKS and SLURM_PROCID are not used, because a batch
// script of Slurm has them even without srun.
static const struct {
    const char *ranks, *rank, *launcher, *mpi;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun of Open MPI", "openmpi"},
    {"PMI_SIZE", "PMI_RANK", "mpiexec of MPICH", "mpich"},
    {"SLURM_STEP_NUM_TASKS", "PMIX_RANK", "srun --mpi=pmix", "openmpi"},
    {"SLURM_STEP_NUM_TASKS", "PMI_RANK", "srun --mpi=pmi2", "mpich"},
    {NULL, "PMIX_RANK", "a launcher with PMIx", "openmpi"},
    {NULL, "PMI_RANK", "a launcher with PMI", "mpich"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun", NULL},
};

static int32_t number(const char *variable) {
    const char *text = variable ? getenv(variable) : NULL;
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 && n < INT32_MAX ? (int32_t)n : 0;
}

struct rlhf__launch rlhf__launch_read(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *ranks = launchers[i].ranks, *rank = launchers[i].rank;
        if (!getenv(rank) || (ranks && !getenv(ranks))) continue;
        const struct rlhf__launch found = {.ranks = ranks ? number(ranks) : -1,
                                           .rank = number(rank),
                                           .launcher = launchers[i].launcher,
                                           .mpi = launchers[i].mpi,
                                           .variable = ranks ? ranks : rank};
        return found.ranks == 0 || found.ranks == 1 ? (struct rlhf__launch){0} : found;
    }
    return (struct rlhf__launch){0};
}

static int is_launchers(const char *assignment) {
    static const char *const begins[] = {"OMPI_", "PMIX_", "PMI_",  "HYDI_", "HYDRA_",
                                         "MPIR_", "PRTE_", "ORTE_", "OPAL_"};
    static const char *const names[] = {
        "SLURM_STEP_NUM_TASKS=", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID="};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(assignment, begins[i], strlen(begins[i])) == 0) return 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(assignment, names[i], strlen(names[i])) == 0) return 1;
    return 0;
}

void rlhf__launch_forget(void) {
    char **to = environ;
    for (char **from = environ; from && *from; from++)
        if (!is_launchers(*from)) *to++ = *from;
    if (to) *to = NULL;
}
