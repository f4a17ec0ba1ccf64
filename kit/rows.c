// rows.c: a "rlhf.row/0" whose rows all have the values that a test lists. See rlhf/test.h.
#include <rlhf/test.h>

static rlhf_status do_open(void *host, rlhf_str json, rlhf_row **out) {
    struct rlhf_test_rows *r = host;
    if (json.len == 0) return RLHF_E_INVALID; // as in the host: the row is missing
    r->open_count++;
    *out = host;
    return RLHF_OK;
}

static void do_close(void *host, rlhf_row *row) {
    if (row) ((struct rlhf_test_rows *)host)->open_count--;
}

// The value at path, of that type (0: any), or NULL.
static const struct rlhf_test_row_value *value_at(void *host, const char *path, int32_t type) {
    const struct rlhf_test_rows *r = host;
    for (uint32_t i = 0; i < r->n_values; i++)
        if (strcmp(r->values[i].path, path) == 0 && (!type || r->values[i].type == type))
            return &r->values[i];
    return NULL;
}

static int32_t do_type(void *host, const rlhf_row *row, const char *path) {
    const struct rlhf_test_row_value *v = value_at(host, path, 0);
    (void)row;
    return v ? v->type : (int32_t)RLHF_ROW_ABSENT;
}

static rlhf_status do_string(void *host, const rlhf_row *row, const char *path, rlhf_str *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_ROW_STRING);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    out->ptr = v->string;
    out->len = strlen(v->string);
    return RLHF_OK;
}

static rlhf_status do_number(void *host, const rlhf_row *row, const char *path, double *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_ROW_NUMBER);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = v->number;
    return RLHF_OK;
}

static rlhf_status do_boolean(void *host, const rlhf_row *row, const char *path, int32_t *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_ROW_BOOL);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = v->number != 0;
    return RLHF_OK;
}

static rlhf_status do_length(void *host, const rlhf_row *row, const char *path, uint64_t *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_ROW_LIST);
    (void)row;
    if (!v) return RLHF_E_INVALID;
    *out = (uint64_t)v->number;
    return RLHF_OK;
}

void rlhf_test_rows_init(struct rlhf_test_rows *r, const struct rlhf_test_row_value *values,
                         uint32_t n_values) {
    memset(r, 0, sizeof *r);
    r->table.size = (uint32_t)sizeof r->table;
    r->table.host = r;
    r->table.open = do_open;
    r->table.close = do_close;
    r->table.type = do_type;
    r->table.string = do_string;
    r->table.number = do_number;
    r->table.boolean = do_boolean;
    r->table.length = do_length;
    r->values = values;
    r->n_values = n_values;
}
