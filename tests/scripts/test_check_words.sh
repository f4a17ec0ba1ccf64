#!/usr/bin/env bash
# test_check_words.sh SOURCE: scripts/check-words counts phrases in comments, pages and messages.
set -euo pipefail
check=$1/scripts/check-words
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git -C "$dir" init -q
commit() { git -C "$dir" add -A && git -C "$dir" -c user.name=t -c user.email=t@t commit -qm t; }

expect() { # STATUS LINE [ARGUMENT]...
    local want=$1 line=$2 said status=0
    shift 2
    said=$("$check" "$@" "$dir" 2>&1) || status=$?
    [ $status = "$want" ] && grep -qF -- "$line" <<<"$said" ||
        { printf 'check-words %s: status %s, not %s, or no "%s" in\n%s\n' "$*" $status "$want" "$line" "$said"; exit 1; }
}

cat >"$dir/a.c" <<'END'
// Sums the rows of a block.
int sum(void); // two words
/* Returns the sum, or
   a negative error code. */
const char *s = "there is no such file"; // the message of a missing file
END
printf '# A page\n\nThis page has a plain sentence. It has another plain one.\n\n```\nthere is no such file\n```\n' >"$dir/a.md"
commit
expect 0 '0 of 4 comment lines (0.0 %), 0 of 2 sentences'
printf '// Fails when there is no file.\n' >>"$dir/a.c"
commit
expect 1 '1 of 5 comment lines (20.0 %)'
expect 1 'a.c:6: "there is no" in: Fails when there is no file.' --list
expect 0 '1 of 1 comment lines (100.0 %), 0 of 0 sentences (0.0 %), 0 of 0 messages (0.0 %) that were added' --since HEAD~1
printf '\nThe judge looks on while the policy trains.\n' >>"$dir/a.md"
commit
expect 1 'a.md: "looks on" in: The judge looks on while the policy trains.' --list
expect 0 '0 of 0 comment lines (0.0 %), 1 of 1 sentences (100.0 %), 0 of 0 messages (0.0 %) that were added' --since HEAD~1
# Files that git does not track yet count, too.
printf '// Fails when nobody looks.\n' >"$dir/new.c"
expect 1 '2 of 6 comment lines' --list
expect 0 'new.c:1: "nobody" in: Fails when nobody looks.' --since HEAD --list
expect 1 'check-words: git diff' --since nothing
rm -f "$dir"/*.c "$dir"/*.md
# Messages are literals of the parts that users meet. Adjacent literals are one message.
mkdir "$dir/host"
cat >"$dir/host/b.c" <<'END'
const char *a = "the member is %s; a string " // two literals, one message
                "is wanted";
const char *b = "there is no such file: %s";
const char *c = "wants more"; // too short to be a sentence
END
commit
expect 1 '1 of 2 messages (50.0 %)'
expect 1 'host/b.c:1: "is wanted" in: the member is %s; a string is wanted' --list
# One literal with "a" instead of "per" is an error, in messages and in the help of options.
rm -rf "$dir"/*
mkdir "$dir/lib"
printf 'const char *help = "rows per step", *limit = "how many rows a phase has", *end = "once a run has ended";\n' >"$dir/lib/b.c"
commit
expect 0 "With 'a' instead of 'per': 0 of 3 literals (0.0 %)"
printf 'const char *help = "rows a step";\n' >"$dir/lib/c.c"
expect 1 "With 'a' instead of 'per': 1 of 4 literals (25.0 %)"
expect 1 'lib/c.c:1: "rows a step" in: rows a step' --list
