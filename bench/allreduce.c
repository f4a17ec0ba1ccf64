// allreduce.c: measures MPI_Allreduce over the same number of floats as rlhf-bench-sums.
//
//   allreduce FLOATS ROUNDS
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double processor_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
    const int floats = argc > 1 ? atoi(argv[1]) : 1000000, rounds = argc > 2 ? atoi(argv[2]) : 5;
    double best = 0, own, all = 0;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *x = calloc((size_t)floats, sizeof *x);
    if (!x) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < floats; i++)
        x[i] = 1;
    double before = 0;
    for (int i = -1; i < rounds; i++) { // round -1 only touches the memory
        if (i == 0) before = processor_seconds();
        MPI_Barrier(MPI_COMM_WORLD);
        const double from = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, x, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        const double took = MPI_Wtime() - from;
        if (i <= 0 || took < best) best = took;
    }
    own = (processor_seconds() - before) / rounds;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("both %.1f ms, %.1f ms of processor time\n", best * 1e3, all * 1e3);
    free(x);
    MPI_Finalize();
    return 0;
}
