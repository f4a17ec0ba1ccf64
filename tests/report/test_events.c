// test_events.c: the lines of events.jsonl, and those that a resumed run keeps.
#include "support/scratch.h"

#include "base/json.h"
#include "report/events.h"

static struct rlhf__events *open_events(struct scratch *s, int64_t keep) {
    struct rlhf__error err = {0};
    struct rlhf__folder *dir = scratch_folder(s->dir);
    struct rlhf__events *e = NULL;
    check_ok(rlhf__events_open(dir, keep, NULL, &e, &err), &err);
    rlhf__folder_close(dir);
    return e;
}

// The lines as an array, without their times.
static json_t *read_events(struct scratch *s) {
    json_t *all = json_array(), *row;
    FILE *f = fopen(scratch_path(s, "events.jsonl"), "rb");
    assert_non_null(f);
    while ((row = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        const double time = json_number_value(json_object_get(row, "time"));
        assert_true(time > 1.7e9 && time < 1e11);
        json_object_del(row, "time");
        json_array_append_new(all, row);
    }
    fclose(f);
    return all;
}

static void line_is(const json_t *all, size_t i, const char *want) {
    char *got = json_dumps(json_array_get(all, i), 0);
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
}

static void lines_of_a_run(void **state) {
    static const char *const argv[] = {"rlhf-host", "--out", "a \"b\"", NULL};
    struct rlhf__events *e = open_events(*state, -1);
    rlhf__events_begin(e, -1, 0, 12, argv);
    rlhf__events_warning(e, 3, "collapsed", "it\nhas");
    rlhf__events_checkpoint(e, 4, 0);
    rlhf__events_checkpoint(e, 5, 1);
    rlhf__events_end(e, 4, "stopped", "the user stopped it");
    rlhf__events_close(e);
    json_t *all = read_events(*state);
    assert_int_equal(json_array_size(all), 5);
    json_t *start = json_array_get(all, 0), *machine = json_object_get(start, "machine");
    assert_true(json_integer_value(json_object_get(machine, "cores")) > 0);
    assert_true(json_integer_value(json_object_get(machine, "memory_mib")) > 0);
    assert_true(strlen(json_string_value(json_object_get(machine, "system"))) > 5);
    assert_non_null(json_object_get(machine, "host"));
    assert_non_null(json_object_get(machine, "cpu"));
    json_object_del(start, "machine");
    assert_string_equal(json_string_value(json_object_get(start, "version")), RLHF_SDK_VERSION);
    json_object_del(start, "version");
    line_is(
        all, 0,
        "{\"phase\": 0, \"event\": \"start\", \"phases\": 12, \"argv\": [\"rlhf-host\", \"--out\", "
        "\"a \\\"b\\\"\"]}");
    line_is(all, 1,
            "{\"phase\": 3, \"event\": \"warning\", \"finding\": \"collapsed\", \"text\": "
            "\"it\\nhas\"}");
    line_is(all, 2, "{\"phase\": 4, \"event\": \"checkpoint\", \"path\": \"checkpoints/000004\"}");
    line_is(all, 3,
            "{\"phase\": 5, \"event\": \"checkpoint\", \"path\": \"checkpoints/000005\", \"best\": "
            "true}");
    line_is(all, 4,
            "{\"phase\": 4, \"event\": \"end\", \"status\": \"stopped\", \"reason\": \"the user "
            "stopped it\"}");
    json_decref(all);
}

// A resumed run repeats the phases after its checkpoint. Their events are removed, and earlier
// events stay.
static void a_resumed_run_keeps_its_history(void **state) {
    struct rlhf__events *e = open_events(*state, -1);
    rlhf__events_begin(e, -1, 0, 12, NULL);
    rlhf__events_warning(e, 2, "jumped", "a");
    rlhf__events_checkpoint(e, 2, 0);
    rlhf__events_warning(e, 3, "collapsed", "b");
    rlhf__events_close(e);
    e = open_events(*state, 2);
    rlhf__events_begin(e, 2, 1, 12, NULL);
    rlhf__events_end(e, 2, "failed", "why");
    rlhf__events_close(e);
    json_t *all = read_events(*state);
    assert_int_equal(json_array_size(all), 5);
    json_t *resume = json_array_get(all, 3);
    assert_string_equal(json_string_value(json_object_get(resume, "event")), "resume");
    assert_int_equal(json_integer_value(json_object_get(resume, "phase")), 2);
    assert_string_equal(json_string_value(json_object_get(resume, "checkpoint")),
                        "checkpoints/000002");
    assert_true(json_is_true(json_object_get(resume, "best")));
    assert_int_equal(json_array_size(json_object_get(resume, "argv")), 0);
    line_is(all, 4,
            "{\"phase\": 2, \"event\": \"end\", \"status\": \"failed\", \"reason\": "
            "\"why\"}");
    json_decref(all);
    rlhf__events_begin(NULL, -1, 0, 12, NULL); // nothing is open yet
    rlhf__events_warning(NULL, 1, "", "");
}

// A failed process wrote a warning of phase 3, and then its end after 2 phases. The resumed run
// does phase 3 again, so the warning goes, and the end stays.
static void events_of_a_failed_phase_are_removed(void **state) {
    struct rlhf__events *e = open_events(*state, -1);
    rlhf__events_warning(e, 3, "collapsed", "a");
    rlhf__events_end(e, 2, "failed", "why");
    rlhf__events_warning(e, 4, "collapsed", "b");
    rlhf__events_close(e);
    e = open_events(*state, 2);
    rlhf__events_checkpoint(e, 3, 0);
    rlhf__events_close(e);
    json_t *all = read_events(*state);
    assert_int_equal(json_array_size(all), 2);
    line_is(all, 0,
            "{\"phase\": 2, \"event\": \"end\", \"status\": \"failed\", \"reason\": "
            "\"why\"}");
    line_is(all, 1, "{\"phase\": 3, \"event\": \"checkpoint\", \"path\": \"checkpoints/000003\"}");
    json_decref(all);
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {T(lines_of_a_run), T(a_resumed_run_keeps_its_history),
                                       T(events_of_a_failed_phase_are_removed)};
    return cmocka_run_group_tests_name("report_events", tests, NULL, NULL);
}
