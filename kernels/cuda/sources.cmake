# What kernels_cuda.so is made of; tests/cuda builds the same files as C++ on the emulation.
set(RLHF_CUDA_SOURCES
  act.cu
  attention.cu
  attention_bf16.cu
  attention_f32.cu
  canary.cu
  context.cu
  elementwise.cu
  embed.cu
  linear.cu
  lt.cu
  lt_plan.cu
  lt_product.cu
  memory.cu
  muon.cu
  norm.cu
  pool.cu
  product.cu
  product_bf16.cu
  product_dot.cu
  product_f32.cu
  ragged.cu
  rows.cu
  table.cu
  weight.cu)
list(TRANSFORM RLHF_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
