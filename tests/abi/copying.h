// copying.h: what the functions of copying.awk do with a struct. Included after <rlhf/...>.
#ifndef COPYING_H
#define COPYING_H

#include <rlhf/base.h>

#include <stdio.h>
#include <stdlib.h>

// Ends the process if the host passes more than this plugin's version of the struct has, even if
// the rest is 0.
static inline void copying_see(const void *from, uint32_t own, const char *name) {
    uint32_t size;
    memcpy(&size, from, sizeof size);
    if (size <= own && size >= 2 * sizeof size) return;
    fprintf(stderr, "copying: the host's %s has %u bytes, this plugin's has %u\n", name, size, own);
    abort();
}

static inline void copying_take(void *to, const void *from, uint32_t own, const char *name) {
    copying_see(from, own, name);
    if (rlhf_copy_in(to, own, from, 2 * sizeof(uint32_t)) == RLHF_OK) return;
    fprintf(stderr, "copying: the host's %s has set a member that this plugin does not know\n",
            name);
    abort();
}

#define SEE(T, from)             copying_see(from, sizeof(T), #T)
#define TAKE_STRUCT(T, to, from) copying_take(&(to), from, sizeof(T), #T)
#define GIVE_STRUCT(T, to, from) rlhf_copy_out(to, &(from), sizeof(T), RLHF_SIZE_TO(T, size))

#endif
