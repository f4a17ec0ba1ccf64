// command_text.c: see command_text.h.
#include "config/command_text.h"

#include "base/printable.h"

void rlhf__command_begin(struct rlhf__buf *out, const char *command) {
    rlhf__buf_puts(out, *command ? "rlhf-host " : "rlhf-host");
    rlhf__buf_puts(out, command);
}

void rlhf__command_path(struct rlhf__buf *out, const char *path) {
    rlhf__buf_puts(out, *path == '-' ? " ./" : " ");
    rlhf__put_shell(out, path);
}

void rlhf__command_flag(struct rlhf__buf *out, const char *flag, const char *value) {
    rlhf__buf_printf(out, " %s%c", flag, *value == '-' ? '=' : ' ');
    rlhf__put_shell(out, value);
}

void rlhf__command_number(struct rlhf__buf *out, const char *flag, int64_t n) {
    rlhf__buf_printf(out, " %s %lld", flag, (long long)n);
}

void rlhf__command_set(struct rlhf__buf *out, const char *setting, const char *value) {
    struct rlhf__buf word = RLHF__BUF_INIT;
    rlhf__buf_printf(&word, "%s=%s", setting, value);
    rlhf__command_flag(out, "--set", rlhf__buf_text(&word));
    if (word.bad) out->bad = 1;
    rlhf__buf_finish(&word);
}
