// hub_id.c: see hub_id.h.
#include "export/hub_id.h"

#include <stdio.h>
#include <string.h>

#define CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

int rlhf__is_hub_id(const char *text) {
    const size_t owner = strspn(text, CHARS);
    const char *name = text[owner] == '/' ? text + owner + 1 : text;
    const size_t n = strspn(name, CHARS);
    return n > 0 && name[n] == '\0' && strlen(text) <= 96 && text[0] != '.' && text[0] != '-' &&
           name[0] != '.' && name[0] != '-' && (name == text || owner > 0);
}

int rlhf__hub_id_of_path(const char *path, char out[128]) {
    const char *at = strstr(path, "/models--");
    char name[100];
    if (!at) return 0;
    at += strlen("/models--");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "/"), at);
    const char *dashes = strstr(name, "--");
    const int owner = (int)(dashes ? dashes - name : 0);
    snprintf(out, 128, "%.*s%s%s", owner, name, dashes ? "/" : "", dashes ? dashes + 2 : name);
    return rlhf__is_hub_id(out);
}
