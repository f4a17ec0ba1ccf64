// note.c: see note.h.
#include "plugin/note.h"

#include <stdio.h>

void rlhf__note_init(struct rlhf__note *n) {
    pthread_mutex_init(&n->lock, NULL);
    n->puts = 0;
    n->status = RLHF_OK;
    n->text[0] = '\0';
}

void rlhf__note_finish(struct rlhf__note *n) { pthread_mutex_destroy(&n->lock); }

void rlhf__note_put(struct rlhf__note *n, rlhf_status status, const char *text) {
    pthread_mutex_lock(&n->lock);
    n->puts++;
    n->status = status;
    snprintf(n->text, sizeof n->text, "%s", text ? text : "");
    pthread_mutex_unlock(&n->lock);
}

uint64_t rlhf__note_mark(struct rlhf__note *n) {
    pthread_mutex_lock(&n->lock);
    uint64_t mark = n->puts;
    pthread_mutex_unlock(&n->lock);
    return mark;
}

rlhf_status rlhf__note_since(struct rlhf__note *n, uint64_t mark, char *out, size_t cap) {
    pthread_mutex_lock(&n->lock);
    int is_new = n->puts > mark;
    rlhf_status st = is_new ? n->status : RLHF_OK;
    snprintf(out, cap, "%s", is_new ? n->text : "");
    pthread_mutex_unlock(&n->lock);
    return st;
}
