// user_gemm.c on a GPU: a CUDA kernel of one's own drives an all-reduce tile by tile, and the kernel after it begins with the rows that
// are there. The lines marked (1) to (6) are all that the communication needs. C++17.
//
//   user_gemm [ranks]      default 2; all on device 0
//
// The GPU has to share memory and atomics with the host, as Grace Hopper's does (tessera/tile_device.h). Compiled by device_check, and
// so far run nowhere.
//
//   nvcc -std=c++17 -arch=sm_90 user_gemm.cu -o user_gemm $(pkg-config --cflags --libs tessera)
#include <tessera/tile_device.h>

#include <thread>
#include <vector>

#include "check.h"

namespace {

constexpr int kM = 192, kN = 160, kK = 96, kTile = 32;

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}

// Each block makes every gridDim.x-th tile, each thread an element of it.
__global__ void multiply(const float* a, const float* b, tsrDeviceTiles t, int* failed) {
  for (int64_t i = blockIdx.x; i < tsrTileCount(&t.tiles); i += gridDim.x) {
    int32_t row, col, rows, cols;
    int64_t ld;
    tsrTileOrder(&t.tiles, i, &row, &col);  // (3) tiles for others first
    tsrTileSize(&t.tiles, row, col, &rows, &cols);
    auto* to = static_cast<float*>(tsrTilePtr(&t.tiles, row, col, &ld));
    const int y = threadIdx.y, x = threadIdx.x;
    if (y < rows && x < cols) {
      float sum = 0;
      for (int k = 0; k < kK; ++k)
        sum += a[(row * kTile + y) * kK + k] * b[k * kN + col * kTile + x];
      to[y * ld + x] = sum;
    }
    // (4) may travel; outside of the branch, since the whole block calls
    if (tsrDeviceTileDone(&t, row, col) != ncclSuccess) *failed = 1;
  }
}

// What follows: each block adds up the rows of every gridDim.x-th row of tiles, a thread a row.
__global__ void add_up(tsrDeviceTiles t, float* sums, int* failed) {
  for (int64_t i = blockIdx.x; i < t.tiles.down; i += gridDim.x) {
    int32_t row, col, rows, cols;
    tsrTileOrder(&t.tiles, i * t.tiles.across, &row, &col);  // in the order in which rows come
    tsrTileSize(&t.tiles, row, col, &rows, &cols);
    const void* where;
    if (tsrDeviceTileWait(&t, int64_t{row} * kTile, rows, &where) != ncclSuccess) {  // (5)
      *failed = 1;
      return;  // the whole block: all threads have the same result
    }
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
      float sum = 0;
      for (int c = 0; c < kN; ++c) sum += static_cast<const float*>(where)[r * t.tiles.ld + c];
      sums[row * kTile + r] = sum;
    }
  }
}

// Returns how many sums were wrong.
int work(ncclComm_t comm, int rank, int ranks) {
  const std::vector<float> a(kM * kK, rank + 1.0F), b(kK * kN, 1.0F);
  std::vector<float> c(kM * kN), sums(kM);
  int failed = 0, wrong = 0;
  tsrFusedConfig_t config = TSR_FUSED_CONFIG_INITIALIZER;  // (1) what follows the product
  config.collective = tsrFusedAllReduce;
  config.rows = kM;
  config.cols = kN;
  config.tile_rows = config.tile_cols = kTile;
  tsrFused_t op;
  tsrDeviceTiles made, used;
  CHECK(tsrFusedCreate(&config, comm, &op));
  CHECK(tsrFusedDeviceInput(op, c.data(), &made));
  CHECK(tsrFusedDeviceOutput(op, c.data(), &used));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  for (int layer = 0; layer < 3; ++layer) {
    CHECK(tsrFusedLaunch(op, c.data(), c.data(), nullptr));  // (2) in place
    multiply<<<16, dim3(kTile, kTile), 0, stream>>>(a.data(), b.data(), made, &failed);
    // Few blocks: those that wait must leave room for the products of other ranks on this device.
    add_up<<<2, kTile, 0, stream>>>(used, sums.data(), &failed);
    CHECK(cudaGetLastError());
    CHECK(tsrFusedWait(op));  // (6) runs the steps of the collective meanwhile
    CHECK(cudaStreamSynchronize(stream));
    const float sum = static_cast<float>(kN) * kK * ranks * (ranks + 1) / 2;
    for (const float got : sums) wrong += got != sum;
    wrong += failed;
  }
  CHECK(cudaStreamDestroy(stream));
  CHECK(tsrFusedDestroy(op));
  return wrong;
}

// Whether device code may use what the host allocated, with the host's atomics.
bool shares_memory() {
  int memory = 0, atomics = 0;
  CHECK(cudaDeviceGetAttribute(&memory, cudaDevAttrPageableMemoryAccess, 0));
  CHECK(cudaDeviceGetAttribute(&atomics, cudaDevAttrHostNativeAtomicSupported, 0));
  return memory != 0 && atomics != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (ranks < 1 || ranks > 16) {
    std::fprintf(stderr, "usage: %s [ranks], 1 to 16\n", argv[0]);
    return 2;
  }
  if (!shares_memory()) {
    std::fprintf(stderr,
                 "device 0 shares no memory and atomics with the host: report tiles from the host "
                 "(user_gemm.c)\n");
    return 1;
  }
  std::vector<ncclComm_t> comms(ranks);
  std::vector<int> wrong(ranks);
  CHECK(ncclCommInitAll(comms.data(), ranks, nullptr));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { wrong[r] = work(comms[r], r, ranks); });
  for (std::thread& thread : threads) thread.join();
  int all = 0;
  for (int r = 0; r < ranks; ++r) {
    CHECK(ncclCommDestroy(comms[r]));
    all += wrong[r];
  }
  std::printf("%d ranks, %d x %d product and its sum, three times: %s\n", ranks, kM, kN,
              all == 0 ? "correct" : "WRONG");
  return all != 0;
}
