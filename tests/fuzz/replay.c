// replay.c: runs a fuzz target over the files of its corpus. Each file is also tried truncated, and
// with single bytes changed. So the normal suite repeats old findings without a fuzzer.
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

enum { MAX_FILE = 1 << 20, CHANGES = 40 };

static size_t read_file(const char *path, uint8_t *out) {
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    size_t n = fread(out, 1, MAX_FILE, f);
    fclose(f);
    return n;
}

// Passes the input in a block of exactly its size, so that a sanitizer sees reads past its end.
static void run(const uint8_t *data, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void replay(uint8_t *data, size_t n) {
    run(data, n);
    for (size_t i = 0; i < CHANGES; i++) {
        size_t at = n * i / CHANGES;
        if (at >= n) break;
        run(data, at);
        uint8_t old = data[at];
        data[at] = (uint8_t)(old ^ (1u << (i % 8)));
        run(data, n);
        data[at] = old;
    }
}

int main(void) {
    static uint8_t data[MAX_FILE];
    DIR *dir = opendir(FUZZ_CORPUS);
    FUZZ_CHECK(dir);
    size_t files = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", FUZZ_CORPUS, e->d_name);
        replay(data, read_file(path, data));
        files++;
    }
    closedir(dir);
    printf("%zu files of %s\n", files, FUZZ_CORPUS);
    FUZZ_CHECK(files > 0);
    return 0;
}
