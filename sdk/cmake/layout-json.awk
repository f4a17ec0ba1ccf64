# layout-json.awk: prints sdk/layout.txt as JSON, for languages that cannot include the headers:
#   {"constants": {"RLHF_KIND_ALGO": 1, ...},
#    "structs": {"rlhf_plan": {"header": "rlhf/algo.h", "frozen": true, "bytes": 72,
#      "members": [{"name": "size", "offset": 0, "bytes": 4, "since": 0, "declaration": "uint32_t size"}, ...]}}}
# `since` is the minor version that added the member. The offsets are those of all machines that the
# contract is for.
#   awk -f layout-json.awk sdk/layout.txt
function quote(text) {
    gsub(/[\\"]/, "\\\\&", text)
    return "\"" text "\""
}
function end_struct() {
    if (name != "") structs = structs ", \"bytes\": " bytes ", \"members\": [" members "]}"
    name = ""
}
function constant(key, value) {
    constants = constants (constants == "" ? "" : ",\n    ") quote(key) ": " value
}
/^== / { end_struct(); header = $2; frozen = $3 == "frozen" ? "true" : "false" }
/^struct [a-z_0-9]+$/ {
    end_struct()
    name = $2
    members = ""
    bytes = 0
    structs = structs (structs == "" ? "" : ",\n    ") quote(name) ": {\"header\": " quote(header) \
        ", \"frozen\": " frozen
}
/^[0-9]+ [0-9]+ [0-9]+ / && name != "" {
    declaration = $0
    sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", declaration)
    member = declaration
    if (match(member, /\(\*[a-z_0-9]+\)/)) member = substr(member, RSTART + 2, RLENGTH - 3)
    else { sub(/\[.*/, "", member); sub(/.*[ *]/, "", member) }
    members = members (members == "" ? "" : ",\n      ") "{\"name\": " quote(member) ", \"offset\": " $2 \
        ", \"bytes\": " $3 ", \"since\": " $1 ", \"declaration\": " quote(declaration) "}"
    bytes = $2 + $3
}
/^RLHF_[A-Z_0-9]+ = -?[0-9]+/ { value = $3; sub(/[^-0-9].*/, "", value); constant($1, value) }
/^#define RLHF_[A-Z_0-9]+ -?[0-9]+u?$/ { value = $3; sub(/u$/, "", value); constant($2, value) }
/^#define RLHF_[A-Z_0-9]+ "[^"]*"$/ { constant($2, $3) }
END {
    end_struct()
    printf "{\n  \"constants\": {\n    %s},\n  \"structs\": {\n    %s}\n}\n", constants, structs
}
