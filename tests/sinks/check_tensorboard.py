"""Reads the event file of tensorboard_sample with TensorBoard's own reader.

usage: check_tensorboard.py PROGRAM. Exit status 77 (skipped) if the package is not installed.
"""
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    print("skipped: the Python package tensorboard is not installed")
    sys.exit(77)

with tempfile.TemporaryDirectory() as run:
    subprocess.run([sys.argv[1], run], check=True)
    acc = event_accumulator.EventAccumulator(run + "/tensorboard", {"histograms": 0})
    acc.Reload()
    scores = [(e.step, e.value) for e in acc.Scalars("objective/scores")]
    assert scores == [(1, 1.0), (2, 2.0), (3, 103.0), (4, 104.0)], scores
    assert acc.Tags()["scalars"] == ["objective/scores"], acc.Tags()  # NaN is left out
    texts = acc.Tensors("samples/text_summary" if "samples/text_summary" in acc.Tags()["tensors"]
                        else "samples")
    assert [t.step for t in texts] == [1, 2, 3, 4], texts
    text = texts[0].tensor_proto.string_val[0].decode()
    assert "great \\| film é" in text and "-12.5" in text, text
    assert acc.SummaryMetadata("samples").plugin_data.plugin_name == "text"
    spread = acc.Histograms("spread/length")
    assert [h.step for h in spread] == [1, 2, 3, 4], spread
    h = spread[0].histogram_value
    assert (h.min, h.max, h.num, h.sum) == (0, 39, 40, 780), h
    assert len(h.bucket) == 32 and sum(h.bucket) == 40 and h.bucket_limit[-1] == 39, h
print("ok")
