// test_csv_sink.c: checks the table that csv_sink.so writes for a run that is stopped and resumed,
// and the error for a missing directory. Needs only <rlhf/test.h>.
// Usage: test_csv_sink path/to/csv_sink.so
#include <rlhf/test.h>

#include <stdio.h>

static struct rlhf_test_host host;

static rlhf_status play(const rlhf_plugin *p, const char *dir, int64_t done, int64_t phases) {
    static const char *const names[] = {"a", "b/c"};
    static const double values[] = {0.5, -2};
    const struct rlhf_test_run run = {.dir = dir,
                                      .done = done,
                                      .phases = phases,
                                      .n_metrics = 2,
                                      .names = names,
                                      .values = values};
    void *self = NULL;
    RLHF_TRY(p->create(&host.table, NULL, &self));
    const rlhf_status st = rlhf_test_sink(p->ops, self, &run);
    p->destroy(self);
    return st;
}

int main(int argc, char **argv) {
    static const char want[] = "phase,steps,elapsed,a,b/c\n"
                               "1,1,2.000,0.5,-2\n"
                               "2,2,4.000,1,-4\n"
                               "3,3,6.000,1.5,-6\n";
    const rlhf_plugin *p = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    char text[512] = "";
    if (!p) return 2;
    rlhf_test_init(&host, 1);
    RLHF_TEST_CHECK(&host, play(p, ".", 0, 2) == RLHF_OK);
    RLHF_TEST_CHECK(&host, play(p, ".", 1, 3) == RLHF_OK); // a resumed run repeats phase 2
    FILE *f = fopen("./metrics.csv", "r");
    if (RLHF_TEST_CHECK(&host, f)) {
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    RLHF_TEST_CHECK(&host, strcmp(text, want) == 0);
    remove("./metrics.csv");
    RLHF_TEST_CHECK(&host, play(p, "no/such/directory", 0, 1) == RLHF_E_IO);
    RLHF_TEST_CHECK(&host, strstr(rlhf_test_failure(&host), "metrics.csv cannot be opened"));
    return rlhf_test_end(&host);
}
