// test_free_memory.c: how cards are found without a driver, how much memory is free, and the
// message if there is not enough memory.
#include "base/host_memory.h"
#include "model/compute_load.h"
#include "model/free_memory.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *root, const char *device, const char *vendor, const char *class) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, device);
    assert_int_equal(mkdir(path, 0777), 0);
    const char *const names[] = {"vendor", "class"}, *const values[] = {vendor, class};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", root, device, names[i]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "%s\n", values[i]);
        fclose(f);
    }
}

static void cards_are_counted(void **state) {
    (void)state;
    char root[] = "/tmp/rlhf-pci-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_int_equal(rlhf__nvidia_cards(root), 0);
    put(root, "0000:00:02.0", "0x8086", "0x030000"); // a device of another manufacturer
    put(root, "0000:01:00.1", "0x10de", "0x040300"); // the sound device of a card
    assert_int_equal(rlhf__nvidia_cards(root), 0);
    put(root, "0000:01:00.0", "0x10de", "0x030000");
    put(root, "0000:02:00.0", "0x10de", "0x030200"); // a card without an output
    assert_int_equal(rlhf__nvidia_cards(root), 2);
    assert_int_equal(rlhf__nvidia_cards("/no/such/directory"), 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void signs_of_a_card(void **state) {
    (void)state;
    static const char *const signs[] = {"dev/nvidiactl", "dev/dxg", "proc/driver/nvidia/version"};
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        char root[] = "/tmp/rlhf-signs-XXXXXX", command[256];
        assert_non_null(mkdtemp(root));
        assert_int_equal(rlhf__nvidia_signs(root), 0);
        snprintf(command, sizeof command, "mkdir -p $(dirname %s/%s) && touch %s/%s", root,
                 signs[i], root, signs[i]);
        assert_int_equal(system(command), 0);
        assert_int_equal(rlhf__nvidia_signs(root), 1);
        snprintf(command, sizeof command, "rm -r %s", root);
        assert_int_equal(system(command), 0);
    }
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_int_equal(rlhf__nvidia_signs("/no/such/directory"), 0);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_equal(rlhf__nvidia_signs("/no/such/directory"), 1);
}

// ---- the machine ----

static void say(const char *root, const char *path, const char *text) {
    char file[512];
    snprintf(file, sizeof file, "mkdir -p %s/$(dirname %s)", root, path);
    assert_int_equal(system(file), 0);
    snprintf(file, sizeof file, "%s/%s", root, path);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#define KIB ((uint64_t)1 << 10)

static void a_control_group_limits_what_is_left(void **state) {
    (void)state;
    char root[] = "/tmp/rlhf-room-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_int_equal(rlhf__host_memory(root).total, 0); // the total is unknown
    say(root, "proc/meminfo", "MemTotal:  9000 kB\nMemFree: 5 kB\nMemAvailable: 8000 kB\n");
    say(root, "proc/self/statm", "900 7 1 1 0 1 0\n");
    struct rlhf__host_memory m = rlhf__host_memory(root);
    assert_int_equal(m.total, 9000 * KIB);
    assert_int_equal(m.left, 8000 * KIB);
    assert_int_equal(m.own, 7 * (uint64_t)sysconf(_SC_PAGESIZE));
    // In cgroup version 2, a parent group's limit counts, "max" means no limit, and page cache
    // counts as available.
    say(root, "proc/self/cgroup", "0::/a/b\n");
    say(root, "sys/fs/cgroup/a/b/memory.max", "max\n");
    say(root, "sys/fs/cgroup/a/b/memory.current", "4096\n");
    assert_int_equal(rlhf__host_memory(root).left, 8000 * KIB);
    say(root, "sys/fs/cgroup/a/memory.max", "1000000\n");
    say(root, "sys/fs/cgroup/a/memory.current", "300000\n");
    say(root, "sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\n");
    m = rlhf__host_memory(root);
    assert_int_equal(m.total, 1000000);
    assert_int_equal(m.left, 800000);
    // In cgroup version 1, a container sees its own group as the top.
    say(root, "proc/self/cgroup", "5:cpu:/x\n4:memory:/not/ours\n0::/\n");
    say(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
    say(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "600000\n");
    m = rlhf__host_memory(root);
    assert_int_equal(m.total, 500000);
    assert_int_equal(m.left, 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

// ---- the need ----

// The run needs 100 KiB for weights and 200 KiB for moments of a policy on the backend, and 1000
// KiB for rows on the host. The program's own memory is already allocated.
static struct rlhf__memory_need need_of(uint64_t left, int32_t own_memory) {
    struct rlhf__memory_need need = {
        .lower = "take less", .memory = {left, 4096 * KIB}, .own_memory = own_memory, .known = 1};
    uint64_t *policy = need.uses.bytes[rlhf__uses_owner(&need.uses, "policy")];
    uint64_t *host = need.uses.bytes[rlhf__uses_owner(&need.uses, "host")];
    policy[RLHF__USE_WEIGHTS] = 100 * KIB;
    policy[RLHF__USE_MOMENTS] = 200 * KIB;
    host[RLHF__USE_ROWS] = 1000 * KIB;
    host[RLHF__USE_PROGRAM] = 50000 * KIB;
    return need;
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    struct rlhf__error err;
    for (int own = 0; own < 2; own++) {
        const uint64_t wanted = (own ? 300 : 1300) * KIB; // a device's memory holds no rows
        struct rlhf__memory_need need = need_of(wanted, own);
        assert_int_equal(rlhf__memory_needed(&need), wanted);
        assert_int_equal(rlhf__free_memory_check(&need, &err), RLHF_OK);
        need = need_of(wanted - 1, own);
        assert_int_equal(rlhf__free_memory_check(&need, &err), RLHF_E_INVALID);
        assert_non_null(strstr(err.text, "policy 300 KiB (weights 100 KiB, moments 200 KiB)"));
        assert_non_null(strstr(err.text, "; take less"));
        assert_true(!strstr(err.text, "on the GPU") == !own);
        assert_true(!strstr(err.text, "rows") == !!own);
        need.there = 1; // already loaded
        assert_int_equal(rlhf__free_memory_check(&need, &err), RLHF_OK);
        need = need_of(0, own);
        need.memory.total = 0; // the total is unknown
        assert_int_equal(rlhf__free_memory_check(&need, &err), RLHF_OK);
    }
}

static void every_buffer_is_listed(void **state) {
    (void)state;
    const struct rlhf__memory_need need = need_of(1 << 20, 0);
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__memory_need_table(&need, &text);
    const char *const lines[] = {"policy           weights                   0.1",
                                 "policy           moments                   0.2",
                                 "host             rows",
                                 "host             program",
                                 "all  ",
                                 "free                                       1.0"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_non_null(strstr(rlhf__buf_text(&text), lines[i]));
    rlhf__buf_finish(&text);
    json_t *v = rlhf__memory_need_json(&need);
    assert_int_equal(json_array_size(json_object_get(v, "buffers")), 4);
    assert_int_equal(json_integer_value(json_object_get(v, "total_bytes")), 51300 * KIB);
    assert_int_equal(json_integer_value(json_object_get(v, "free_bytes")), 1 << 20);
    assert_null(json_object_get(v, "uncounted"));
    json_decref(v);
}

static void unknown_workspaces_are_named(void **state) {
    (void)state;
    struct rlhf__memory_need need = need_of(1 << 20, 0);
    struct rlhf__buf text = RLHF__BUF_INIT;
    need.uncounted = "toy";
    rlhf__memory_need_table(&need, &text);
    assert_non_null(
        strstr(rlhf__buf_text(&text), "toy              workspace             unknown"));
    rlhf__buf_finish(&text);
    json_t *v = rlhf__memory_need_json(&need);
    assert_string_equal(json_string_value(json_object_get(v, "uncounted")), "toy");
    json_decref(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cards_are_counted),
                                       cmocka_unit_test(signs_of_a_card),
                                       cmocka_unit_test(a_control_group_limits_what_is_left),
                                       cmocka_unit_test(what_does_not_fit_is_refused),
                                       cmocka_unit_test(every_buffer_is_listed),
                                       cmocka_unit_test(unknown_workspaces_are_named)};
    return cmocka_run_group_tests_name("models: free memory", tests, NULL, NULL);
}
