// fault_space.c: for LD_PRELOAD: a file system with $RLHF_TEST_FREE KiB of free space. If the file
// $RLHF_TEST_FREE_FILE exists, the number in it counts instead.
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

static unsigned long free_kib(void) {
    const char *name = getenv("RLHF_TEST_FREE_FILE"), *kib = getenv("RLHF_TEST_FREE");
    unsigned long n = kib ? strtoul(kib, NULL, 10) : 0;
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
