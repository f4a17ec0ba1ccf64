#!/usr/bin/env python3
"""Checks that golden.py notices changes of the arithmetic. Makes one change at a time, builds, and expects a difference.

    controls.py BUILD

Edits the sources of this tree and restores them, so nothing else may build from it meanwhile. Exit status 1 if a
change is not noticed, or if the unchanged tree already differs.
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CONTROLS = (
    ("nothing", "kernels/cpu/product/gemm.c", "", ""),
    ("another order of lanes", "kernels/cpu/machine/vec_parts.h", "return vp_hsum(vp_add(v.p[0], v.p[1]));",
     "return vp_hsum(v.p[0]) + vp_hsum(v.p[1]);"),
    ("another cut of chains", "kernels/cpu/product/gemm.h", "GEMM_CHAIN 64", "GEMM_CHAIN 128"),
    ("another constant", "kernels/cpu/machine/vec_math.h", "4.999999305e-1f", "4.999999603e-1f"),
    ("expf of libm", "kernels/cpu/attention/hot_attn_fwd.c", "tail = vf_exp(vf_sub(tail, m));",
     "float e[VF_LANES]; vf_store(e, vf_sub(tail, m)); "
     "for (size_t j = 0; j < VF_LANES; j++) e[j] = expf(e[j]); tail = vf_load(e);"),
    ("logf of libm", "kernels/cpu/attention/hot_attn_fwd.c", "rlhf_log_f32(sum)", "logf(sum)"),
)


def differs(build):
    subprocess.run(["cmake", "--build", build, "--target", "kernels_cpu"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([sys.executable, f"{HERE}/golden.py", build, "--jobs", "qwen3", "--dtypes", "f32",
                           "--levels", "avx2", "--threads", "1"], stdout=subprocess.PIPE, text=True)
    if "sha256 is" not in done.stdout and done.returncode:
        sys.exit(f"controls.py: golden.py failed:\n{done.stdout}")
    return done.returncode != 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build, bad = os.path.abspath(sys.argv[1]), 0
    for name, file, old, new in CONTROLS:
        path = os.path.join(ROOT, file)
        with open(path) as f:
            text = f.read()
        if text.count(old) < 1:
            sys.exit(f"controls.py: {file} no longer contains {old!r}; change the table in this script")
        try:
            with open(path, "w") as f:
                f.write(text.replace(old, new) if old else text)
            noticed = differs(build)
        finally:
            with open(path, "w") as f:
                f.write(text)
        print(f"{name}: {'differs' if noticed else 'the same'}", flush=True)
        bad += noticed != (name != "nothing")
    subprocess.run(["cmake", "--build", build, "--target", "kernels_cpu"], check=True, stdout=subprocess.DEVNULL)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
