// load.c: opens a compute backend as the host does. A backend linked by nvcc must load on a machine
// without a driver, and report that the driver is missing. Compiled with sdk/kit/backend.c.
#include <rlhf/test.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    static struct rlhf_test_backend b;
    const rlhf_plugin *p = rlhf_test_backend_load(argv[1]);
    const rlhf_kernels_open options = {.size = sizeof options};
    if (!p) return 1;
    const rlhf_status st = rlhf_test_backend_open(&b, p, &options);
    if (st == RLHF_OK)
        printf("cuda: loaded, %s\n", b.c->detail);
    else
        printf("cuda: loaded; open says: %s\n", b.said);
    const int ok = st == RLHF_OK || strstr(b.said, "driver");
    rlhf_test_backend_close(&b);
    return ok ? 0 : 1;
}
