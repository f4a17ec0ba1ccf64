# copying.awk: prints a plugin's functions in the reading style of rlhf_copy_in, from sdk/layout.txt.
#   awk -v ops=rlhf_reward_ops -f copying.awk sdk/layout.txt sdk/layout.txt
# Each function of the table copies the structs that it gets, with those that they point to, and calls the
# function of `real`. copying() replaces the functions of a table by these. A struct whose functions get the
# struct itself is only looked at (SEE), because it must not move. See copying.h.
FNR == 1 { pass++ }
/^struct / { struct = $2; n = 0 }
/^[0-9]+ [0-9]+ [0-9]+ / {
    text = $0
    sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", text)
    if (pass == 1) {
        if ($2 == 0 && text == "uint32_t size") sized[struct] = 1
        if (index(text, ")(const " struct " *")) stays[struct] = 1
        member[struct, ++members[struct]] = text
    } else if (struct == ops && text ~ /\(\*/)
        wrap(text)
}
function type(argument) {
    if (argument ~ /\*/) sub(/[a-z_0-9]+$/, "", argument)
    else if (argument ~ / /) sub(/ [a-z_0-9]+$/, "", argument)
    return argument
}
function struct_of(argument) {
    sub(/^const /, "", argument)
    sub(/ ?\*$/, "", argument)
    return argument
}
function is_pointer(t) { return t ~ /^(const )?rlhf_[a-z_0-9]+ \*$/ }
# Copies *from, a struct, to `to`, and the structs that it points to. `back`: the struct of the caller in
# which those pointers are set again before results are copied to it.
function take(to, from, name, back,   i, text, m, inner) {
    body = body "    TAKE_STRUCT(" name ", " to ", " from ");\n"
    for (i = 1; i <= members[name]; i++) {
        text = member[name, i]
        if (text !~ /^(const )?rlhf_[a-z_0-9]+ \*[a-z_0-9]+$/) continue
        m = text
        sub(/.*\*/, "", m)
        inner = struct_of(type(text))
        if (!(inner in sized)) continue
        head = head "    " inner " " to "_" m ";\n"
        body = body "    if (" to "." m ") {\n    "
        take(to "_" m, to "." m, inner, "")
        body = body "        " to "." m " = &" to "_" m ";\n    }\n"
        if (back != "") after = after "    " to "." m " = " back "->" m ";\n"
    }
}
function wrap(text,   result, name, args, count, i, t, s, list, pass_on, any, argument) {
    result = text
    sub(/ ?\(\*.*/, "", result)
    name = text
    sub(/.*\(\*/, "", name)
    args = name
    sub(/\).*/, "", name)
    sub(/^[a-z_0-9]+\)\(/, "", args)
    sub(/\)$/, "", args)
    head = body = list = pass_on = after = ""
    count = split(args, argument, /, /)
    for (i = 1; i <= count; i++) {
        t = type(argument[i])
        s = struct_of(t)
        list = list (i > 1 ? ", " : "") t (t ~ /\*$/ ? "" : " ") "a" i
        if (is_pointer(t) && (s in sized) && (s in stays)) {
            body = body "    SEE(" s ", a" i ");\n"
            any = 1
        } else if (is_pointer(t) && (s in sized)) {
            head = head "    " s " c" i ";\n"
            take("c" i, "a" i, s, t ~ /^const / ? "" : "a" i)
            if (t !~ /^const /) after = after "    if (st == RLHF_OK) st = GIVE_STRUCT(" s ", a" i ", c" i ");\n"
            pass_on = pass_on (i > 1 ? ", " : "") "&c" i
            any = 1
            continue
        }
        pass_on = pass_on (i > 1 ? ", " : "") "a" i
    }
    if (!any) return
    print "static " result (result ~ /\*$/ ? "" : " ") "copying_" name "(" list ") {"
    print head body "    " (result == "void" ? "" : result " st = ") "real." name "(" pass_on ");"
    print after (result == "void" ? "" : "    return st;\n") "}\n"
    wrapped[++n_wrapped] = name
}
END {
    print "static void copying(" ops " *o) {"
    for (i = 1; i <= n_wrapped; i++)
        print "    if (o->" wrapped[i] ") o->" wrapped[i] " = copying_" wrapped[i] ";"
    print "}"
}
