// describe.c: rlhf_kernels.describe for the CPU.
#include "context.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The value of the first line "key<blanks>: value" of a file in /proc; "" if the key is missing.
static void proc_value(const char *path, const char *key, char *out, size_t cap) {
    char line[512];
    out[0] = 0;
    FILE *f = fopen(path, "r");
    while (f && !out[0] && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, cap, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    if (f) fclose(f);
}

static void read_memory(rlhf_device_info *info) {
    const long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
    unsigned long long kib = 0;
    char text[64];
    if (page > 0 && all > 0) info->memory = (uint64_t)page * (uint64_t)all;
    proc_value("/proc/meminfo", "MemAvailable", text, sizeof text);
    if (sscanf(text, "%llu", &kib) == 1) info->memory_free = (uint64_t)kib << 10;
}

static void read_levels(rlhf_device_info *info) {
    const char *cap = getenv("RLHF_CPU_ISA");
    const int used = rlhf__isa_choose(cap);
    info->n_levels = RLHF__ISA_COUNT;
    for (int i = 0; i < RLHF__ISA_COUNT; i++) {
        const struct rlhf__level *from = rlhf__isa_level(i);
        rlhf_level *to = &info->levels[i];
        const char *lacks = rlhf__isa_lacks(i);
        snprintf(to->name, sizeof to->name, "%s", from->name);
        snprintf(to->loops, sizeof to->loops, "%s", from->loops);
        snprintf(to->f32, sizeof to->f32, "%s", RLHF__EXACT ? from->f32 : "oneDNN");
        snprintf(to->bf16, sizeof to->bf16, "%s", RLHF__EXACT ? from->bf16 : "oneDNN");
        to->has = from->hot && !lacks;
        to->used = i == used;
        if (!from->hot)
            snprintf(to->why_not, sizeof to->why_not, "this build leaves it out");
        else if (lacks)
            snprintf(to->why_not, sizeof to->why_not, "this machine lacks %s", lacks);
        else if (i > used)
            snprintf(to->why_not, sizeof to->why_not, "RLHF_CPU_ISA is %.20s", cap);
    }
}

rlhf_status rlhf__cpu_describe(uint32_t gpu, rlhf_device_info *out) {
    rlhf_device_info info = {.size = sizeof info, .devices = 1};
    const rlhf_kernels *own = rlhf_kernels_v0();
    rlhf_compute *t = NULL;
    if (own->create(NULL, &t, info.missing, sizeof info.missing) == RLHF_OK)
        snprintf(info.library, sizeof info.library, "%s", t->detail);
    own->destroy(t);
    read_memory(&info);
    read_levels(&info);
    proc_value("/proc/cpuinfo", "model name", info.name, sizeof info.name);
    if (!info.name[0]) snprintf(info.name, sizeof info.name, "CPU");
    if (gpu) snprintf(info.missing, sizeof info.missing, "there is one device, 0");
    return rlhf_copy_out(out, &info, sizeof info, RLHF_SIZE_TO(rlhf_device_info, missing));
}
