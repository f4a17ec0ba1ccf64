// cpu_name.c: see cpu_name.h.
#include "machine/cpu_name.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The numbers are from the kernel's arch/arm64/include/asm/cputype.h.
static const struct {
    unsigned implementer, part;
    const char *name;
} parts[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},   {0x41, 0xd05, "Arm Cortex-A55"},
    {0x41, 0xd07, "Arm Cortex-A57"},   {0x41, 0xd08, "Arm Cortex-A72"},
    {0x41, 0xd09, "Arm Cortex-A73"},   {0x41, 0xd0a, "Arm Cortex-A75"},
    {0x41, 0xd0b, "Arm Cortex-A76"},   {0x41, 0xd0c, "Arm Neoverse N1"},
    {0x41, 0xd0d, "Arm Cortex-A77"},   {0x41, 0xd40, "Arm Neoverse V1"},
    {0x41, 0xd41, "Arm Cortex-A78"},   {0x41, 0xd44, "Arm Cortex-X1"},
    {0x41, 0xd46, "Arm Cortex-A510"},  {0x41, 0xd47, "Arm Cortex-A710"},
    {0x41, 0xd48, "Arm Cortex-X2"},    {0x41, 0xd49, "Arm Neoverse N2"},
    {0x41, 0xd4d, "Arm Cortex-A715"},  {0x41, 0xd4e, "Arm Cortex-X3"},
    {0x41, 0xd4f, "Arm Neoverse V2"},  {0x41, 0xd80, "Arm Cortex-A520"},
    {0x41, 0xd81, "Arm Cortex-A720"},  {0x41, 0xd84, "Arm Neoverse V3"},
    {0x46, 0x001, "Fujitsu A64FX"},    {0x48, 0xd01, "HiSilicon Kunpeng 920"},
    {0x51, 0x001, "Qualcomm Oryon"},   {0xc0, 0xac3, "AmpereOne"},
    {0xc0, 0xac4, "AmpereOne (AC04)"},
};

void rlhf__proc_value(const char *path, const char *key, char *out, size_t cap) {
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

void rlhf__cpu_name(const char *root, char *out, size_t cap) {
    char path[PATH_MAX], implementer[32], part[32];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    rlhf__proc_value(path, "model name", out, cap);
    if (out[0]) return;
    rlhf__proc_value(path, "CPU implementer", implementer, sizeof implementer);
    rlhf__proc_value(path, "CPU part", part, sizeof part);
    const unsigned long i = strtoul(implementer, NULL, 16), p = strtoul(part, NULL, 16);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (parts[k].implementer == i && parts[k].part == p) {
            snprintf(out, cap, "%s", parts[k].name);
            return;
        }
    if (implementer[0] && part[0])
        snprintf(out, cap, "implementer %s, part %s", implementer, part);
    else
        snprintf(out, cap, "CPU");
}
