"""Makes data/blocks.gguf, a tensor of blocks for each type that is read, and data/blocks.safetensors, the
numbers that gguf-py gives for them. test_gguf_blocks.c compares. The scales include zeros of both signs,
subnormal numbers, the largest number and infinity. Run it from this folder; needs numpy, gguf, safetensors."""
import gguf
import numpy as np
from gguf import GGMLQuantizationType as T
from safetensors.numpy import save_file

# f16 scales by their bits; the others of a block are random.
SCALES = [0x3C00, 0xB555, 0x0001, 0x03FF, 0x83FF, 0x8000, 0x0000, 0x7BFF, 0x0400, 0x2E66, 0x7C00]
# type: offsets of the f16 numbers in a block
TYPES = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
         T.Q6_K: [208]}
ROWS = 2

rng = np.random.default_rng(54)
writer = gguf.GGUFWriter("data/blocks.gguf", "blocks")
want = {}
for kind, halves in TYPES.items():
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (len(SCALES) * ROWS, size), dtype=np.uint8)
    for i, block in enumerate(blocks):
        for k, at in enumerate(halves):
            scale = SCALES[(i + k * (1 + i // len(SCALES))) % len(SCALES)]
            block[at:at + 2] = np.frombuffer(np.uint16(scale).tobytes(), dtype=np.uint8)
    data = blocks.reshape(ROWS, -1)
    writer.add_tensor(kind.name, data, raw_dtype=kind)
    with np.errstate(invalid="ignore", over="ignore"):
        want[kind.name] = gguf.quants.dequantize(data, kind)
halves = rng.integers(0, 65536, (ROWS, 40), dtype=np.uint16)
halves[0, :len(SCALES)] = SCALES
for kind in (T.F16, T.BF16):
    data = halves.view(np.uint8) if kind == T.BF16 else halves.view(np.float16)
    writer.add_tensor(kind.name, data, raw_dtype=kind if kind == T.BF16 else None)
    want[kind.name] = gguf.quants.dequantize(halves.view(np.uint8), kind)
floats = rng.standard_normal((ROWS, 5)).astype(np.float32)
writer.add_tensor("F32", floats)
want["F32"] = floats
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
save_file(want, "data/blocks.safetensors")
