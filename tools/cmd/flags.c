// flags.c: see flags.h.
#include "cmd/flags.h"

#include "base/printable.h"
#include "option/aliases.h"
#include "option/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct rlhf__flag *find(const struct rlhf__flag *flags, size_t n, const char *name,
                                     size_t len) {
    for (size_t i = 0; i < n; i++)
        if (strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0) return &flags[i];
    return NULL;
}

// Returns the name that this command uses for a flag of another command. For example, a model
// directory is --policy in training and --model elsewhere.
static const char *other_name(const struct rlhf__flag *flags, size_t n, const char *typed) {
    const char *other = strcmp(typed, "--model") == 0    ? "--policy"
                        : strcmp(typed, "--policy") == 0 ? "--model"
                                                         : "";
    if (find(flags, n, other, strlen(other))) return other;
    if (!find(flags, n, "--set", strlen("--set"))) return NULL;
    return strcmp(typed, "--backend") == 0 ? "--set compute.backend="
           : strcmp(typed, "--gpu") == 0   ? "--set compute.gpu="
                                           : NULL;
}

// Returns this command's flag for a setting, e.g. --max-new for sampling.max_new_tokens or
// --template for prompts.template. Returns NULL if the command lacks such a flag.
static const char *flag_of(const struct rlhf__flag *flags, size_t n, const char *setting) {
    const char *dot = strrchr(setting, '.');
    char name[64];
    snprintf(name, sizeof name, "--%s", dot ? dot + 1 : setting + strspn(setting, "-"));
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    const char *other = other_name(flags, n, name);
    if (other) return other;
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(flags[i].name);
        const int is_start = len > strlen("--n") && (name[len] == '-' || !name[len]);
        if (strncmp(flags[i].name, name, len) == 0 && is_start) return flags[i].name;
    }
    return NULL;
}

// Returns the flag to suggest instead of `typed`, or NULL; for commands without settings. `typed`
// may be the name of a setting, or a flag of another program (rlhf__alias_find).
static const char *flag_for(const struct rlhf__flag *flags, size_t n, const char *typed) {
    const struct rlhf__alias *a = rlhf__alias_find(typed);
    const char *flag = a && *a->ours ? flag_of(flags, n, a->ours) : NULL;
    return flag ? flag : flag_of(flags, n, typed);
}

// If two or more flags begin with the typed text, writes " (did you mean --temperature or
// --template?)" and returns 1.
static int several_begin(const struct rlhf__flag *flags, size_t n, const char *typed, char *out,
                         size_t cap) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    int found = 0;
    for (size_t i = 0; i < n; i++)
        if (typed[2] && strncmp(flags[i].name, typed, strlen(typed)) == 0)
            rlhf__buf_printf(&list, "%s%s", found++ ? " or " : "", flags[i].name);
    const int said = found > 1 && !list.bad;
    if (said) snprintf(out, cap, " (did you mean %s?)", rlhf__buf_text(&list));
    rlhf__buf_finish(&list);
    return said;
}

static rlhf_status unknown(const struct rlhf__flag *flags, size_t n, const char *name, size_t len,
                           const char *command, struct rlhf__error *err) {
    char typed[64], hint[200];
    snprintf(typed, sizeof typed, "%.*s", (int)(len < 60 ? len : 60), name);
    struct rlhf__nearest near = {typed, NULL, 0};
    for (size_t i = 0; i < n; i++)
        rlhf__nearest_offer(&near, flags[i].name);
    if (!several_begin(flags, n, typed, hint, sizeof hint))
        rlhf__nearest_hint(&near, hint, sizeof hint);
    const int trains = find(flags, n, "--policy", strlen("--policy")) != NULL;
    const char *other = other_name(flags, n, typed);
    if (!other && !trains) other = flag_for(flags, n, typed);
    if (other) snprintf(hint, sizeof hint, "; here it is %s", other);
    if (!trains && strcmp(typed, "--set") == 0 && !find(flags, n, "--set", strlen("--set")))
        snprintf(hint, sizeof hint,
                 "; settings are of training runs, and %s takes the flags that '%s --help' lists",
                 command, command);
    if (!other && trains) {
        struct rlhf__buf theirs = RLHF__BUF_INIT;
        if (rlhf__alias_hint(typed, 1, &theirs))
            snprintf(hint, sizeof hint, "%s", rlhf__buf_text(&theirs));
        rlhf__buf_finish(&theirs);
    }
    if (!hint[0])
        snprintf(hint, sizeof hint, "; see rlhf-host %s%s--help", command, *command ? " " : "");
    return rlhf__fail(err, RLHF_E_INVALID, "%s%sunknown option \"%s\"%s", command,
                      *command ? ": " : "", typed, hint);
}

int rlhf__typed_integer(const char *text, int64_t *out) {
    char *end;
    // strtoll skips blanks, so reject them
    if (!*text || text[strspn(text, "+-0123456789")]) return 0;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !*end && !errno;
}

static rlhf_status set_i64(const struct rlhf__flag *f, const char *text, void *at,
                           struct rlhf__error *err) {
    int64_t value;
    if (!rlhf__typed_integer(text, &value) || value < f->i_min || value > f->i_max)
        return rlhf__fail(err, RLHF_E_INVALID, "%s must be an integer from %lld to %lld, found %s",
                          f->name, (long long)f->i_min, (long long)f->i_max,
                          *text ? text : "nothing");
    memcpy(at, &value, sizeof value);
    return RLHF_OK;
}

static rlhf_status set_f64(const struct rlhf__flag *f, const char *text, void *at,
                           struct rlhf__error *err) {
    char *end;
    double v = strtod(text, &end);
    const int decimal = !text[strspn(text, "+-.0123456789eE")]; // excludes blanks and hexadecimal
    if (end == text || *end || !decimal || !isfinite(v) || v < f->f_min || v > f->f_max)
        return rlhf__fail(err, RLHF_E_INVALID, "%s must be a number from %g to %g, found %s",
                          f->name, f->f_min, f->f_max, *text ? text : "nothing");
    memcpy(at, &v, sizeof v);
    return RLHF_OK;
}

static rlhf_status append(struct rlhf__flag_list *list, const char *text, struct rlhf__error *err) {
    const char **item = realloc(list->item, (list->n + 1) * sizeof *item);
    if (!item) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    list->item = item;
    item[list->n++] = text;
    return RLHF_OK;
}

static rlhf_status set(const struct rlhf__flag *f, const char *text, void *out,
                       struct rlhf__error *err) {
    void *at = (char *)out + f->offset;
    const int names_file = f->arg && (strcmp(f->arg, "FILE") == 0 || strcmp(f->arg, "DIR") == 0);
    if (names_file && !*text)
        return rlhf__fail(err, RLHF_E_INVALID, "%s must name a %s, found nothing", f->name,
                          *f->arg == 'F' ? "file" : "directory");
    switch (f->kind) {
    case RLHF__FLAG_I64:
        return set_i64(f, text, at, err);
    case RLHF__FLAG_F64:
        return set_f64(f, text, at, err);
    case RLHF__FLAG_LIST:
        return append(at, text, err);
    case RLHF__FLAG_STR:
        memcpy(at, &text, sizeof text);
        return RLHF_OK;
    default: {
        const int32_t one = 1;
        memcpy(at, &one, sizeof one);
        return RLHF_OK;
    }
    }
}

// Report an argument that is not a flag. The user may have meant a model directory or a text.
static rlhf_status unexpected(const struct rlhf__flag *flags, size_t n, const char *arg,
                              const char *command, struct rlhf__error *err) {
    static const char *const models[] = {"--policy", "--model"};
    struct stat seen;
    char hint[64] = "";
    const int is_dir = stat(arg, &seen) == 0 && S_ISDIR(seen.st_mode);
    for (size_t i = 0; is_dir && i < 2; i++)
        if (find(flags, n, models[i], strlen(models[i])))
            snprintf(hint, sizeof hint, "; a model directory is given by %s DIR", models[i]);
    if (!is_dir && find(flags, n, "--prompt", strlen("--prompt")))
        snprintf(hint, sizeof hint, "; a text is given by --prompt TEXT");
    return rlhf__fail(err, RLHF_E_INVALID, "%s%s\"%s\" was not expected here%s", command,
                      *command ? ": " : "", arg, hint);
}

// Other programs use temperature 0 for greedy decoding: point to --greedy.
static rlhf_status no_temperature(const struct rlhf__flag *flags, size_t n,
                                  const struct rlhf__flag *f, const char *value,
                                  struct rlhf__error *err) {
    char *end;
    if (strcmp(f->name, "--temperature") != 0 || strtod(value, &end) != 0 || end == value ||
        !find(flags, n, "--greedy", strlen("--greedy")))
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--temperature must be above 0, found %s; --greedy always takes the most "
                      "likely token",
                      value);
}

rlhf_status rlhf__flags_parse(const struct rlhf__flag *flags, size_t n, int argc, char **argv,
                              void *out, struct rlhf__flag_list *rest, struct rlhf__error *err) {
    int only_rest = 0;
    const char *slash = strrchr(argv[0], '/');
    const char *command = strcmp(slash ? slash + 1 : argv[0], "rlhf-host") == 0 ? "" : argv[0];
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (!only_rest && strcmp(arg, "--") == 0) {
            only_rest = 1;
            continue;
        }
        if (only_rest || arg[0] != '-' || !arg[1]) {
            if (!rest) return unexpected(flags, n, arg, command, err);
            RLHF_TRY(append(rest, arg, err));
            continue;
        }
        size_t len = strcspn(arg, "=");
        const struct rlhf__flag *f = find(flags, n, arg, len);
        if (!f) return unknown(flags, n, arg, len, command, err);
        const char *value = arg[len] ? arg + len + 1 : NULL;
        if (f->kind == RLHF__FLAG_SWITCH && value)
            return rlhf__fail(err, RLHF_E_INVALID, "%s takes no value, found %s", f->name, value);
        if (f->kind != RLHF__FLAG_SWITCH && !value) {
            if (i + 1 == argc)
                return rlhf__fail(err, RLHF_E_INVALID, "%s needs a value: %s %s", f->name, f->name,
                                  f->arg);
            value = argv[++i];
            if (value[0] == '-' && find(flags, n, value, strlen(value)))
                return rlhf__fail(err, RLHF_E_INVALID,
                                  "%s needs a value: %s %s, found the flag %s (%s=%s, if that is "
                                  "the value)",
                                  f->name, f->name, f->arg, value, f->name, value);
        }
        if (value) RLHF_TRY(no_temperature(flags, n, f, value, err));
        RLHF_TRY(set(f, value, out, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__flags_idle(const struct rlhf__flag_idle *flags, size_t n, const char *command,
                             const char *why, struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++)
        if (flags[i].given)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: %s has no effect %s", command,
                              flags[i].name, why);
    return RLHF_OK;
}

int rlhf__flags_want_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return 1;
    return 0;
}

void rlhf__flags_help(FILE *out, const struct rlhf__flag *flags, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct rlhf__buf line = RLHF__BUF_INIT;
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", flags[i].name, flags[i].arg ? " " : "",
                 flags[i].arg ? flags[i].arg : "");
        rlhf__buf_printf(&line, "  %-23s  %s\n", left, flags[i].help);
        rlhf__print_two_columns(out, rlhf__buf_text(&line));
        rlhf__buf_finish(&line);
    }
}

int rlhf__flags_helped(const struct rlhf__flag *flags, size_t n, const char *usage, int argc,
                       char **argv) {
    if (!rlhf__flags_want_help(argc, argv)) return 0;
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "usage: %s\n", usage);
    rlhf__print_two_columns(stdout, rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
    rlhf__flags_help(stdout, flags, n);
    return 1;
}
