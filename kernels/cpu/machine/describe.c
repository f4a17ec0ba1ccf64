// describe.c: rlhf_kernels_ops.describe for the CPU.
#include "context.h"
#include "cpu_name.h"
#include "reference/instance.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void write_memory(struct rlhf__json *j) {
    const long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
    unsigned long long kib = 0;
    char text[64];
    if (page > 0 && all > 0) rlhf__json_number(j, "memory", (uint64_t)page * (uint64_t)all);
    rlhf__proc_value("/proc/meminfo", "MemAvailable", text, sizeof text);
    if (sscanf(text, "%llu", &kib) == 1) rlhf__json_number(j, "memory_free", (uint64_t)kib << 10);
}

static void write_level(struct rlhf__json *j, int i, int used, const char *cap) {
    const struct rlhf__level *l = rlhf__isa_level(i);
    const char *lacks = rlhf__isa_lacks(i);
    char why[64] = "";
    if (!l->hot)
        snprintf(why, sizeof why, "this build leaves it out");
    else if (lacks)
        snprintf(why, sizeof why, "this machine lacks %s", lacks);
    else if (i > used && rlhf__isa_is_slow(i) && !(cap && *cap))
        snprintf(why, sizeof why, "f32 instructions are faster on this CPU");
    else if (i > used)
        snprintf(why, sizeof why, "RLHF_CPU_ISA is %.20s", cap ? cap : "");
    rlhf__json_begin(j, NULL, "{");
    rlhf__json_text(j, "name", l->name);
    rlhf__json_bool(j, "supported", l->hot && !lacks);
    rlhf__json_bool(j, "used", i == used);
    rlhf__json_text(j, "loops", l->loops);
    rlhf__json_text(j, "f32", l->f32);
    rlhf__json_text(j, "bf16", l->bf16);
    rlhf__json_text(j, "why_unused", why);
    rlhf__json_end(j, "}");
}

rlhf_status rlhf__cpu_describe(void *self, uint32_t gpu, const char **json) {
    struct rlhf__backend *b = self;
    struct rlhf__json *j = &b->json;
    char name[128], detail[512], missing[512];
    const char *cap = getenv("RLHF_CPU_ISA");
    const int used = rlhf__isa_choose(cap);
    rlhf__cpu_try(detail, missing, sizeof missing);
    if (gpu) snprintf(missing, sizeof missing, "there is one device, 0");
    rlhf__cpu_name("", name, sizeof name);
    rlhf__json_start(j);
    rlhf__json_number(j, "devices", 1);
    rlhf__json_text(j, "name", name);
    rlhf__json_text(j, "library", detail);
    write_memory(j);
    rlhf__json_text(j, "missing", missing);
    rlhf__json_begin(j, "levels", "[");
    for (int i = 0; i < RLHF__ISA_COUNT; i++)
        write_level(j, i, used, cap);
    rlhf__json_end(j, "]");
    return rlhf__backend_described(b, json);
}
