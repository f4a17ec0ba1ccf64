// test_cpu_name.c: reads the CPU's name from copies of /proc/cpuinfo: of x86-64, of aarch64 with a
// known or unknown part, and from a copy without any name.
#include "support/check.h"

#include "machine/cpu_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void names(const char *cpuinfo, const char *expected) {
    char root[] = "/tmp/test-cpu-name-XXXXXX", proc[64], path[80], name[128];
    assert_non_null(mkdtemp(root));
    snprintf(proc, sizeof proc, "%s/proc", root);
    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    assert_int_equal(mkdir(proc, 0700), 0);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(cpuinfo, f);
    assert_int_equal(fclose(f), 0);
    rlhf__cpu_name(root, name, sizeof name);
    unlink(path);
    rmdir(proc);
    rmdir(root);
    assert_string_equal(name, expected);
}

static void the_model_name(void **state) {
    (void)state;
    names("processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU @ 2 GHz\n", "Some CPU @ 2 GHz");
}

static void implementer_and_part(void **state) {
    (void)state;
    names("processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n",
          "Arm Neoverse N1");
    names("CPU implementer\t: 0x41\nCPU part\t: 0xfff\n", "implementer 0x41, part 0xfff");
}

static void nothing(void **state) {
    (void)state;
    names("processor\t: 0\n", "CPU");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_name),
        cmocka_unit_test(implementer_and_part),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
