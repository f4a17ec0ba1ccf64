// rows.c: a fake "rlhf.row/1". All its rows have the same values, which the test lists. See
// rlhf/test.h.
#include <rlhf/log.h>
#include <rlhf/test.h>

// Returns the test's rows, or NULL if the test does not offer any.
static struct rlhf_test_rows *offered(const rlhf_host *host) {
    const rlhf_row_service *table = (const rlhf_row_service *)host->service(host, RLHF_SVC_ROW);
    return (struct rlhf_test_rows *)(table ? table->self : NULL);
}

static rlhf_status do_open(const rlhf_host *host, rlhf_str json, rlhf_row **out) {
    struct rlhf_test_rows *r = offered(host);
    if (json.len == 0) // the row is missing, as in the host
        return host->fail(host, RLHF_E_INVALID, "there is no data row");
    r->open_count++;
    *out = (rlhf_row *)(void *)r;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_row *row) {
    if (row) offered(host)->open_count--;
}

// Returns the value at `path`, or NULL if it is absent or of another type (type 0: any).
static const struct rlhf_test_row_value *value_at(const rlhf_host *host, const char *path,
                                                  int32_t type) {
    const struct rlhf_test_rows *r = offered(host);
    for (uint32_t i = 0; i < r->n_values; i++)
        if (strcmp(r->values[i].path, path) == 0 && (!type || r->values[i].type == type))
            return &r->values[i];
    return NULL;
}

static rlhf_status lacks(const rlhf_host *host, const char *path) {
    return rlhf_failf(host, RLHF_E_INVALID, "the data row has no \"%s\" of that type", path);
}

static int32_t do_type(const rlhf_host *host, const rlhf_row *row, const char *path) {
    const struct rlhf_test_row_value *v = value_at(host, path, 0);
    (void)row;
    return v ? v->type : (int32_t)RLHF_JSON_ABSENT;
}

static rlhf_status do_string(const rlhf_host *host, const rlhf_row *row, const char *path,
                             rlhf_str *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_JSON_STRING);
    (void)row;
    if (!v) return lacks(host, path);
    out->ptr = v->string;
    out->len = strlen(v->string);
    return RLHF_OK;
}

static rlhf_status do_number(const rlhf_host *host, const rlhf_row *row, const char *path,
                             double *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_JSON_NUMBER);
    (void)row;
    if (!v) return lacks(host, path);
    *out = v->number;
    return RLHF_OK;
}

static rlhf_status do_integer(const rlhf_host *host, const rlhf_row *row, const char *path,
                              int64_t *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_JSON_NUMBER);
    (void)row;
    if (!v) return lacks(host, path);
    *out = (int64_t)v->number;
    return (double)*out < v->number || (double)*out > v->number ? lacks(host, path) : RLHF_OK;
}

static rlhf_status do_boolean(const rlhf_host *host, const rlhf_row *row, const char *path,
                              int32_t *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_JSON_BOOL);
    (void)row;
    if (!v) return lacks(host, path);
    *out = v->number != 0;
    return RLHF_OK;
}

static rlhf_status do_json(const rlhf_host *host, const rlhf_row *row, const char *path, char *utf8,
                           uint64_t cap, uint64_t *len) {
    const struct rlhf_test_row_value *v = value_at(host, path, 0);
    char number[40];
    (void)row;
    if (!v || v->type == RLHF_JSON_LIST || v->type == RLHF_JSON_OBJECT) return lacks(host, path);
    snprintf(number, sizeof number, "%.17g", v->number);
    const int is_text = v->type == RLHF_JSON_STRING;
    const char *from = is_text                       ? v->string
                       : v->type == RLHF_JSON_NUMBER ? number
                       : v->type == RLHF_JSON_NULL   ? "null"
                       : v->number != 0              ? "true"
                                                     : "false";
    *len = 0;
    if (is_text && (*len)++ < cap) utf8[*len - 1] = '"';
    for (; *from; from++) {
        if (is_text && (*from == '"' || *from == '\\') && (*len)++ < cap) utf8[*len - 1] = '\\';
        if ((*len)++ < cap) utf8[*len - 1] = *from;
    }
    if (is_text && (*len)++ < cap) utf8[*len - 1] = '"';
    return RLHF_OK;
}

// A fake row has no list of its members.
static rlhf_status do_key(const rlhf_host *host, const rlhf_row *row, const char *path, uint64_t i,
                          rlhf_str *out) {
    (void)row;
    (void)i;
    (void)out;
    return lacks(host, path);
}

static rlhf_status do_item(const rlhf_host *host, const rlhf_row *row, const char *path, uint64_t i,
                           rlhf_row **out) {
    (void)row;
    (void)i;
    *out = NULL;
    return lacks(host, path);
}

static rlhf_status do_length(const rlhf_host *host, const rlhf_row *row, const char *path,
                             uint64_t *out) {
    const struct rlhf_test_row_value *v = value_at(host, path, RLHF_JSON_LIST);
    (void)row;
    if (!v) return lacks(host, path);
    *out = (uint64_t)v->number;
    return RLHF_OK;
}

void rlhf_test_rows_init(struct rlhf_test_rows *r, const struct rlhf_test_row_value *values,
                         uint32_t n_values) {
    memset(r, 0, sizeof *r);
    r->table.size = (uint32_t)sizeof r->table;
    r->table.self = r;
    r->table.open = do_open;
    r->table.close = do_close;
    r->table.type = do_type;
    r->table.string = do_string;
    r->table.number = do_number;
    r->table.integer = do_integer;
    r->table.boolean = do_boolean;
    r->table.json = do_json;
    r->table.length = do_length;
    r->table.key = do_key;
    r->table.item = do_item;
    r->values = values;
    r->n_values = n_values;
}
