// life.c: tests for every plugin: options, instances, out of memory, state.
#include "check/cases.h"
#include "check/guard.h"
#include "check/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the descriptor ----

// Returns 1 if id is a reversed domain and a name: three or more parts, separated by dots. The
// loader has checked that no part is empty.
static int is_reverse_dns(const char *id) {
    const char *dot = strchr(id, '.');
    return dot && strchr(dot + 1, '.');
}

static int try_descriptor(struct rlhf__check *c, int32_t step) {
    const rlhf_plugin *d = &c->plugin->desc;
    if (step > 0) return 0;
    if (!is_reverse_dns(d->id))
        rlhf__child_log_found(
            c->log, RLHF__CHECK_ID,
            "id is \"%s\"; it must be reverse DNS, a domain backwards and a name, "
            "e.g. \"org.example.%s\"",
            d->id, c->plugin->stem);
    if (strspn(d->summary, " \t\r\n") == strlen(d->summary))
        rlhf__child_log_found(c->log, RLHF__CHECK_SUMMARY,
                              "summary is %s; it must be a line that says what the plugin does",
                              *d->summary ? "blank" : "empty");
    return 1;
}

// ---- the option table ----

static int try_table(struct rlhf__check *c, int32_t step) {
    if (step > 0) return 0;
    for (uint32_t i = 0; i < c->plugin->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&c->plugin->table, i, &o);
        if (!o.help || !*o.help)
            rlhf__child_log_found(c->log, RLHF__CHECK_HELP, "option \"%s\" has no help text",
                                  o.key);
    }
    return 1;
}

// ---- instances ----

static int try_create(struct rlhf__check *c, int32_t step) {
    const rlhf_plugin *d = &c->plugin->desc;
    struct rlhf__probe t;
    struct rlhf__error err;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "create() with the options' defaults, then destroy()");
    if (rlhf__probe_init(c, NULL, 0, &t, &err) < 0) {
        if (*rlhf__probe_missing(&t))
            rlhf__child_log_fact(c->log,
                                 "it needs \"%s\", which is not stood in for: what needs "
                                 "an instance was not tried",
                                 rlhf__probe_missing(&t));
        else
            rlhf__child_log_found(c->log, RLHF__CHECK_CREATE,
                                  "with the options' defaults it fails: %s", err.text);
    } else if (d->create && !t.self) {
        rlhf__child_log_found(c->log, RLHF__CHECK_CREATE, "create() made no instance");
    }
    rlhf__probe_finish(&t);
    return 1;
}

static int try_destroy(struct rlhf__check *c, int32_t step) {
    const rlhf_plugin *d = &c->plugin->desc;
    if (step > 0 || !d->destroy) return 0;
    rlhf__child_log_doing(c->log, "destroy(NULL)");
    d->destroy(NULL);
    return 1;
}

static double lowest(const rlhf_opt *o) {
    return o->flags & RLHF_OPT_MIN_OPEN ? nextafter(o->f_min, o->f_max) : o->f_min;
}

static double highest(const rlhf_opt *o) {
    return o->flags & RLHF_OPT_MAX_OPEN ? nextafter(o->f_max, o->f_min) : o->f_max;
}

// Lists the values at the limits of an option's range. Returns the value with index `turn`, or NULL
// after the last one.
static json_t *at_limit(const rlhf_opt *o, int32_t turn) {
    static const char *const texts[] = {"", "no/such/file", "\xc3\xa9 \xe2\x80\xae"};
    switch (o->type) {
    case RLHF_T_BOOL:
        return turn < 2 ? json_boolean(turn) : NULL;
    case RLHF_T_I64:
        return turn < 2 ? json_integer(turn ? o->i_max : o->i_min) : NULL;
    case RLHF_T_F64:
        return turn < 2 ? json_real(turn ? highest(o) : lowest(o)) : NULL;
    case RLHF_T_ENUM:
        for (int32_t i = 0; i <= turn; i++)
            if (!o->choices[i]) return NULL;
        return json_string(o->choices[turn]);
    case RLHF_T_LIST:
        if (turn == 0) return json_array();
        if (turn > 1) return NULL;
        return json_pack("[s,s]", o->choices && o->choices[0] ? o->choices[0] : texts[0],
                         o->choices && o->choices[0] ? o->choices[0] : texts[2]);
    case RLHF_T_I64_LIST:
        if (turn == 0) return json_array();
        return turn == 1 ? json_pack("[I,I]", (json_int_t)o->i_min, (json_int_t)o->i_max) : NULL;
    case RLHF_T_F64_LIST:
        if (turn == 0) return json_array();
        return turn == 1 ? json_pack("[f,f]", lowest(o), highest(o)) : NULL;
    default:
        return turn < 3 ? json_string(texts[turn]) : NULL;
    }
}

static int try_limit(struct rlhf__check *c, int32_t step) {
    json_t *value = NULL;
    rlhf_opt o = {0};
    for (uint32_t i = 0; i < c->plugin->table.n && !value; i++) {
        rlhf__opt_at(&c->plugin->table, i, &o);
        for (int32_t turn = 0; (value = at_limit(&o, turn)) != NULL; turn++) {
            if (step-- == 0) break;
            json_decref(value);
        }
    }
    if (!value) return 0;
    json_t *options = c->options ? json_deep_copy(c->options) : json_object();
    struct rlhf__buf shown = RLHF__BUF_INIT;
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf__json_write(&shown, value, 0);
    rlhf__child_log_doing(c->log, "create() with %s=%s", o.key, rlhf__buf_text(&shown));
    json_object_set_new(options, o.key, value);
    rlhf__probe_init(c, options, 0, &t, &err); // create() may refuse these, with a message
    const rlhf_plugin *d = &c->plugin->desc;
    for (uint32_t i = 0; t.config && d->why_unused && i < c->plugin->table.n; i++) {
        rlhf__opt_at(&c->plugin->table, i, &o);
        rlhf_option_in in = {.config = t.config, .key = o.key};
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_option_in, &in, c->plugin->abi_minor, &tails);
        d->why_unused(&in);
        rlhf__guard_kept(&tails, c->log);
    }
    rlhf__probe_finish(&t);
    rlhf__buf_finish(&shown);
    json_decref(options);
    return 1;
}

static int try_memory(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t;
    struct rlhf__error err;
    if (step >= 2000) return 0;
    rlhf__child_log_doing(c->log, "create() with no memory for allocation %d", step + 1);
    rlhf__probe_init(c, NULL, step + 1, &t, &err);
    const int more = t.host && rlhf__probe_allocs(&t) > step;
    rlhf__probe_finish(&t);
    return more;
}

// ---- extensions ----

// Step 0 calls extension() without an instance. Step 1 calls it with an instance.
static int try_extension(struct rlhf__check *c, int32_t step) {
    static const char unknown[] = "org.example.unknown/1";
    const rlhf_plugin *d = &c->plugin->desc;
    struct rlhf__probe t = {.check = c};
    struct rlhf__error err;
    if (!d->extension || step > 1) return 0;
    rlhf__child_log_doing(c->log, "extension(%s, \"%s\")", step ? "self" : "NULL", unknown);
    if (step == 0 || rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK)
        if (d->extension(t.self, unknown))
            rlhf__child_log_found(c->log, RLHF__CHECK_EXTENSION,
                                  "%s gives a table for an interface that there is not",
                                  c->log->doing);
    rlhf__probe_finish(&t);
    return 1;
}

// ---- state ----

// Save a state, load it into a new instance and save it again. Both saved states must be the same.
static void round_trip(struct rlhf__check *c, struct rlhf__state_buffer *s,
                       struct rlhf__state_buffer *again) {
    struct rlhf__probe t;
    struct rlhf__error err;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
        rlhf__state_buffer_save(&t, s, &err) < 0)
        rlhf__child_log_found(c->log, RLHF__CHECK_STATE, "of a fresh instance, %s", err.text);
    rlhf__probe_finish(&t);
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        if (rlhf__state_buffer_load(&t, s, c->plugin->desc.state_version, &err) < 0)
            rlhf__child_log_found(c->log, RLHF__CHECK_STATE, "its own saved state is refused: %s",
                                  err.text);
        else if (s->at != s->len)
            rlhf__child_log_found(c->log, RLHF__CHECK_STATE,
                                  "load() read %llu of the %llu bytes that save() wrote",
                                  (unsigned long long)s->at, (unsigned long long)s->len);
        else if (rlhf__state_buffer_save(&t, again, &err) == RLHF_OK &&
                 (again->len != s->len || memcmp(again->bytes, s->bytes, s->len) != 0))
            rlhf__child_log_found(c->log, RLHF__CHECK_STATE,
                                  "after load(), save() writes other bytes");
    }
    rlhf__probe_finish(&t);
}

static void full_sink(struct rlhf__check *c, struct rlhf__state_buffer *s) {
    struct rlhf__probe t;
    struct rlhf__error err;
    s->limit = 0;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        const rlhf_status st = rlhf__state_buffer_save(&t, s, &err);
        if (s->refused && st != RLHF_E_IO)
            rlhf__child_log_found(c->log, RLHF__CHECK_SAVE,
                                  "write() returned %d and save() %d, not the same", RLHF_E_IO, st);
    }
    rlhf__probe_finish(&t);
}

// Checks that load() of a truncated state returns the error that it gets from read().
static void cut_state(struct rlhf__check *c, struct rlhf__state_buffer *s, uint64_t part) {
    struct rlhf__probe t;
    struct rlhf__error err;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
        rlhf__state_buffer_save(&t, s, &err) == RLHF_OK && s->len) {
        rlhf__probe_finish(&t);
        s->len = s->len * part / 4;
        if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
            rlhf__state_buffer_load(&t, s, c->plugin->desc.state_version, &err) == RLHF_OK)
            rlhf__child_log_found(c->log, RLHF__CHECK_LOAD,
                                  "load() of %llu bytes, of which some are missing, succeeded",
                                  (unsigned long long)s->len);
    }
    rlhf__probe_finish(&t);
}

static int try_state(struct rlhf__check *c, int32_t step) {
    struct rlhf__state_buffer s, again;
    if (!c->plugin->desc.state_version || step > 4) return 0;
    if (rlhf__state_buffer_init(&s) && rlhf__state_buffer_init(&again)) {
        if (step == 0) round_trip(c, &s, &again);
        if (step == 1) full_sink(c, &s);
        if (step > 1) cut_state(c, &s, (uint64_t)step - 2);
        rlhf__state_buffer_finish(&again);
    }
    rlhf__state_buffer_finish(&s);
    return 1;
}

const struct rlhf__check_case rlhf__life_cases[] = {
    {"descriptor", RLHF__CHECK_CRASH, 0, 0, try_descriptor},
    {"options", RLHF__CHECK_CRASH, 0, 0, try_table},
    {"create", RLHF__CHECK_CRASH, 0, 0, try_create},
    {"destroy", RLHF__CHECK_DESTROY, 0, 0, try_destroy},
    {"limits", RLHF__CHECK_CRASH, 0, 1, try_limit},
    {"memory", RLHF__CHECK_MEMORY, 0, 0, try_memory},
    {"extension", RLHF__CHECK_EXTENSION, 0, 0, try_extension},
    {"state", RLHF__CHECK_CRASH, 0, 0, try_state},
    {NULL, 0, 0, 0, NULL},
};
