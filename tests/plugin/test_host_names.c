// test_host_names.c: the names that plugins cannot take are those of the table in docs/contract.md.
// A later host may use further names only if no plugin of an earlier version can have taken them.
#include "support/scratch.h"

#include "base/file.h"
#include "learn/plan.h"
#include "option/options.h"
#include "plugin/metric_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "| names of | not allowed |\n";

static const struct {
    const char *row; // the row's first cell
    int entry;       // enum rlhf__entry; -1: `list` has the names
    const char *const *(*list)(void);
} rows[] = {{"options of a reward", RLHF__ENTRY_REWARD, NULL},
            {"options of an environment", RLHF__ENTRY_ENVIRONMENT, NULL},
            {"options of a sink", RLHF__ENTRY_SINK, NULL},
            {"options of an algorithm", RLHF__ENTRY_ALGO, NULL},
            {"metrics of an algorithm", -1, rlhf__metrics_of_host},
            {"metrics of any other plugin", -1, rlhf__metrics_of_owner},
            {"models", -1, rlhf__plan_roles}};

static const char *const *names_of(size_t k) {
    return rows[k].list ? rows[k].list() : rlhf__host_keys(rows[k].entry);
}

// Returns the row of docs/contract.md, with its newline cut off. Free the result.
static char *row_of(const char *first) {
    struct rlhf__error err = {0};
    struct rlhf__buf page = RLHF__BUF_INIT;
    char path[1024], start[96];
    snprintf(path, sizeof path, "%s/docs/contract.md", getenv("RLHF_SOURCE_DIR"));
    check_ok(rlhf__file_read(path, 1 << 20, &page, &err), &err);
    snprintf(start, sizeof start, "\n| %s | ", first);
    const char *table = strstr(rlhf__buf_text(&page), head);
    const char *row = table ? strstr(table, start) : NULL;
    if (!row) fail_msg("docs/contract.md has no row of %s", first);
    char *copy = strndup(row + strlen(start), strcspn(row + strlen(start), "\n"));
    rlhf__buf_finish(&page);
    return copy;
}

static int has(const char *const *names, const char *name) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0) return 1;
    return 0;
}

static void the_page_lists_the_names(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char *row = row_of(rows[k].row), *rest = row;
        size_t n = 0, listed = 0;
        while (names_of(k)[n])
            n++;
        for (char *name; (name = strchr(rest, '`')); listed++) {
            char *end = strchr(name + 1, '`');
            assert_non_null(end);
            *end = '\0';
            if (!has(names_of(k), name + 1))
                fail_msg("%s: the host does not refuse %s", rows[k].row, name + 1);
            rest = end + 1;
        }
        if (listed != n)
            fail_msg("%s: docs/contract.md lists %zu names, the host refuses %zu; further names "
                     "must begin with host_ or host/",
                     rows[k].row, listed, n);
        free(row);
    }
}

// A simulated later host has another option, metric and model. A plugin of this version cannot have
// taken their names, but it can have taken these names without the prefix.
static void later_names_are_free(void **state) {
    (void)state;
    static const char *const later[] = {"host_retries", "host/queue_length", "host_draft", "host_",
                                        "host/"};
    static const char *const free_ones[] = {"retries_most", "queue_length", "draft",
                                            "hosts",        "host",         "my_host_"};
    char full[RLHF__METRIC_NAME];
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        assert_true(rlhf__is_hosts(later[i]));
        assert_non_null(rlhf__metric_name("", later[i], full));
        assert_non_null(rlhf__metric_name("rewards/a", later[i], full));
    }
    for (size_t i = 0; i < sizeof free_ones / sizeof *free_ones; i++) {
        assert_false(rlhf__is_hosts(free_ones[i]));
        assert_null(rlhf__metric_name("", free_ones[i], full));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_lists_the_names),
                                       cmocka_unit_test(later_names_are_free)};
    return cmocka_run_group_tests_name("plugin/host_names", tests, NULL, NULL);
}
