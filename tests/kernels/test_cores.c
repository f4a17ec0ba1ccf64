// test_cores.c: the CPU backend's default number of threads, on copies of /sys and /proc. The
// number depends on masks, on the quotas of both versions of control groups, and on the cores, not
// on their hyper-threads.
#include "support/check.h"

#include "machine/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char root[64];
    cpu_set_t allowed;
};

static void shell(const struct place *p, const char *script) {
    char line[4096];
    snprintf(line, sizeof line, "cd '%s' && %s", p->root, script);
    assert_int_equal(system(line), 0);
}

// A machine of 4 cores with two hyper-threads each. Processors i and i + 4 belong to one core, and
// all are allowed.
static int setup(void **state) {
    struct place *p = calloc(1, sizeof *p);
    if (!p) return -1;
    snprintf(p->root, sizeof p->root, "/tmp/test-cores-XXXXXX");
    if (!mkdtemp(p->root)) return -1;
    CPU_ZERO(&p->allowed);
    for (size_t i = 0; i < 8; i++)
        CPU_SET(i, &p->allowed);
    shell(p, "mkdir -p proc/self sys/fs/cgroup && for i in 0 1 2 3; do for k in $i $((i + 4)); do "
             "d=sys/devices/system/cpu/cpu$k/topology; mkdir -p $d; "
             "echo $i,$((i + 4)) >$d/thread_siblings_list; done; done");
    *state = p;
    return 0;
}

static int teardown(void **state) {
    struct place *p = *state;
    char line[128];
    snprintf(line, sizeof line, "rm -rf '%s'", p->root);
    const int status = system(line);
    free(p);
    return status;
}

static int count(const struct place *p) {
    return rlhf__cores_count(p->root, &p->allowed, sizeof p->allowed);
}

static void one_thread_a_core(void **state) {
    struct place *p = *state;
    assert_int_equal(count(p), 4);
    CPU_CLR(0, &p->allowed); // its sibling 4 is still allowed
    assert_int_equal(count(p), 4);
    CPU_CLR(4, &p->allowed);
    assert_int_equal(count(p), 3);
    CPU_ZERO(&p->allowed);
    CPU_SET(6, &p->allowed);
    CPU_SET(2, &p->allowed);
    assert_int_equal(count(p), 1);
}

static void an_unknown_machine_counts_processors(void **state) {
    struct place *p = *state;
    shell(p, "rm -r sys proc");
    assert_int_equal(count(p), 8);
    CPU_ZERO(&p->allowed);
    assert_int_equal(count(p), 1);
}

static void quotas_of_version_2(void **state) {
    struct place *p = *state;
    shell(p, "mkdir -p sys/fs/cgroup/a/b && echo 0::/a/b >proc/self/cgroup && "
             "echo max 100000 >sys/fs/cgroup/a/b/cpu.max");
    assert_int_equal(count(p), 4);
    shell(p, "echo 200000 100000 >sys/fs/cgroup/a/b/cpu.max");
    assert_int_equal(count(p), 2);
    shell(p, "echo 150000 100000 >sys/fs/cgroup/a/b/cpu.max"); // the result is rounded up
    assert_int_equal(count(p), 2);
    shell(p, "echo 5000 100000 >sys/fs/cgroup/a/b/cpu.max");
    assert_int_equal(count(p), 1);
    shell(p, "echo 1600000 100000 >sys/fs/cgroup/a/b/cpu.max");
    assert_int_equal(count(p), 4);
    shell(p, "echo 300000 100000 >sys/fs/cgroup/a/cpu.max"); // quota of the parent group
    assert_int_equal(count(p), 3);
    shell(p, "echo 100000 100000 >sys/fs/cgroup/cpu.max"); // quota of a container's group, its root
    assert_int_equal(count(p), 1);
    shell(p, "echo 0::/not/there >proc/self/cgroup");
    assert_int_equal(count(p), 1);
}

static void quotas_of_version_1(void **state) {
    struct place *p = *state;
    shell(p, "mkdir -p sys/fs/cgroup/cpu,cpuacct/d sys/fs/cgroup/cpuset/d && "
             "printf '7:cpuset:/d\\n4:cpu,cpuacct:/d\\n0::/\\n' >proc/self/cgroup && "
             "echo -1 >sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us && "
             "echo 100000 >sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us");
    assert_int_equal(count(p), 4);
    shell(p, "echo 250000 >sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us");
    assert_int_equal(count(p), 3);
    shell(p, "mv sys/fs/cgroup/cpu,cpuacct sys/fs/cgroup/cpu && "
             "echo 50000 >sys/fs/cgroup/cpu/d/cpu.cfs_period_us && "
             "echo 100000 >sys/fs/cgroup/cpu/d/cpu.cfs_quota_us");
    assert_int_equal(count(p), 2);
    // A controller whose name merely begins with `cpu` is a different controller.
    shell(p, "mv sys/fs/cgroup/cpu sys/fs/cgroup/cpuset2 && "
             "printf '4:cpuset2:/d\\n' >proc/self/cgroup");
    assert_int_equal(count(p), 4);
}

static void broken_files_limit_nothing(void **state) {
    struct place *p = *state;
    shell(p,
          "printf 'x\\n0:\\n\\n0::' >proc/self/cgroup && echo nonsense >sys/fs/cgroup/cpu.max && "
          "echo >sys/devices/system/cpu/cpu0/topology/thread_siblings_list && "
          "echo 99999999999 >sys/devices/system/cpu/cpu4/topology/thread_siblings_list");
    assert_int_equal(count(p), 5);
    shell(p, "echo 0::/ >proc/self/cgroup && echo 0 0 >sys/fs/cgroup/cpu.max");
    assert_int_equal(count(p), 5);
    shell(p, "echo -200000 100000 >sys/fs/cgroup/cpu.max");
    assert_int_equal(count(p), 5);
}

static void this_process_has_at_least_one(void **state) {
    (void)state;
    const int n = rlhf__cores_auto();
    assert_true(n >= 1 && n <= sysconf(_SC_NPROCESSORS_CONF));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(one_thread_a_core),          CASE(an_unknown_machine_counts_processors),
        CASE(quotas_of_version_2),        CASE(quotas_of_version_1),
        CASE(broken_files_limit_nothing), CASE(this_process_has_at_least_one)};
    return cmocka_run_group_tests_name("kernels: cores", tests, NULL, NULL);
}
