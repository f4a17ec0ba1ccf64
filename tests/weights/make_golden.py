"""Makes data/python.safetensors with the Python `safetensors` package: values that test_safetensors.c
expects, in F32, F16, BF16 and I64. Run it from this folder."""
import torch
from safetensors.torch import save_file

values = [0.0, -0.0, 1.0, -2.5, 0.1, 65504.0, 1e-7, 3.0]
save_file({"f32": torch.tensor(values).reshape(2, 4), "f16": torch.tensor(values).half(),
           "bf16": torch.tensor(values).bfloat16().reshape(4, 1, 2), "i64": torch.tensor([7, -7]),
           "none": torch.zeros(0, 3)}, "data/python.safetensors", {"format": "pt", "made by": "torch"})
