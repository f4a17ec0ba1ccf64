# What kernels_cuda.so is made of; tests/cuda builds the same files as C++ on the emulation.
set(RLHF_CUDA_SOURCES
  context.cu
  elementwise.cu
  linear.cu
  memory.cu
  muon.cu
  product.cu
  product_bf16.cu
  product_dot.cu
  product_f32.cu
  table.cu
  weight.cu)
list(TRANSFORM RLHF_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
