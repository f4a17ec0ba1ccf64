// fault_space.c: for LD_PRELOAD: a file system with $RLHF_TEST_FREE KiB of free space. "600,100"
// means 600 KiB at the first call and 100 KiB at all later ones. If the file $RLHF_TEST_FREE_FILE
// exists, the number in it counts instead.
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

static unsigned long free_kib(void) {
    const char *name = getenv("RLHF_TEST_FREE_FILE"), *kib = getenv("RLHF_TEST_FREE");
    static int calls;
    char *next = NULL;
    unsigned long n = kib ? strtoul(kib, &next, 10) : 0;
    for (int i = 0; i < calls && next && *next == ','; i++)
        n = strtoul(next + 1, &next, 10);
    calls++;
    FILE *f = name ? fopen(name, "r") : NULL;
    if (f && fscanf(f, "%lu", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}

static void fill(struct statvfs *s) {
    *s = (struct statvfs){.f_bsize = 1024, .f_frsize = 1024, .f_blocks = 1UL << 30};
    s->f_bavail = s->f_bfree = free_kib();
}

int statvfs(const char *restrict path, struct statvfs *restrict s) {
    (void)path;
    fill(s);
    return 0;
}

int fstatvfs(int fd, struct statvfs *s) {
    (void)fd;
    fill(s);
    return 0;
}
