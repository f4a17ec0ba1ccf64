#!/bin/sh
# A slow line between two namespaces, as rlhf-host scale measures it. Only bounds that a busy machine
# cannot break are checked: the measured rate is at most 10 % above the line's, and the measured
# latency is at least the line's delay.
set -e
here=$(cd "$(dirname "$0")" && pwd)
bin=$RLHF_BUILD_DIR/bin/rlhf-host
[ -e "$RLHF_BUILD_DIR/lib/rlhf/0/collectives/collective_openmpi.so" ] || {
    echo "skipped: built without Open MPI" >&2
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bash "$here/slow-line" 200 0 1 "$bin" scale --measure "$work/line.json"
DELAY_LINE=$RLHF_BUILD_DIR/tests/delay_line bash "$here/slow-line" 400 2000 1 "$bin" scale --measure "$work/delayed.json" ||
    [ $? = 77 ] || exit 1

python3 - "$work" <<'END'
import json, os, sys
for name, rate, delay in ("line.json", 200e6 / 8, 0), ("delayed.json", 400e6 / 8, 2000e-6):
    path = os.path.join(sys.argv[1], name)
    if not os.path.exists(path):
        continue
    with open(path) as file:
        line = json.load(file)["network"]
    assert "2 ranks on 2 machines" in line["detail"], line
    assert line["ranks_per_host"] == 1, line
    assert line["latency_s"] >= delay, line
    # the bucket lets 256 KiB pass at once
    big = [(size, seconds) for size, seconds in line["exchange"] if size >= 4e6]
    assert big and all(size / seconds <= 1.1 * rate for size, seconds in big), line
    print(f"{name}: {line['bytes_per_s'] * 8e-6:.0f} Mbit/s, {line['latency_s'] * 1e6:.0f} us")
END
