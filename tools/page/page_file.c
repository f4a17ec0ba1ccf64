// page_file.c: see page_file.h.
#include "page/page_file.h"

#include "base/file.h"

#include <sys/stat.h>

rlhf_status rlhf__page_file_check(const char *command, const char *path, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error unread = {0, ""};
    struct stat st;
    if (lstat(path, &st) < 0) return RLHF_OK; // writing it says what else is wrong
    const int ours = S_ISREG(st.st_mode) &&
                     rlhf__file_read(path, (uint64_t)64 << 20, &text, &unread) == RLHF_OK &&
                     rlhf__page_is_ours(rlhf__buf_text(&text), text.len);
    rlhf__buf_free(&text);
    if (ours) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: '%s' exists and is not a page of this program; choose another name with "
                      "--out FILE",
                      command, path);
}
