// load.c: opens a compute backend and creates an instance as the host does. A backend linked by
// nvcc must load on a machine without a driver, and report its absence in a clear message.
#include <rlhf/compute.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    void *so = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void *symbol = so ? dlsym(so, RLHF_KERNELS_SYMBOL) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s: %s\n", argv[1], dlerror());
        return 1;
    }
    rlhf_kernels_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry);
    const rlhf_kernels *k = entry();
    rlhf_kernels_options options = {.size = sizeof options};
    rlhf_compute *c = NULL;
    char error[512] = "";
    const rlhf_status st = k->create(&options, &c, error, sizeof error);
    if (st == RLHF_OK) {
        printf("cuda: loaded, %s\n", c->detail);
        k->destroy(c);
        return 0;
    }
    printf("cuda: loaded; create says: %s\n", error);
    return error[0] && strstr(error, "driver") ? 0 : 1;
}
