// Stores of results. Part of loops.hpp, with the same rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ringlet/kernels/kernels.hpp"

namespace ringlet::kernels {
namespace {

constexpr std::size_t kLineBytes = 64;

// Orders streaming stores before later ordinary stores.
void end_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Stores one cache line, aligned on both sides, past the caches if the CPU has streaming stores.
void stream_line(const void* from, void* to) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_load_si512(from));
#elif defined(__AVX2__)
  for (int i = 0; i < 2; ++i) {
    _mm256_stream_si256(static_cast<__m256i*>(to) + i, _mm256_load_si256(static_cast<const __m256i*>(from) + i));
  }
#elif defined(__x86_64__)
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_load_si128(static_cast<const __m128i*>(from) + i));
  }
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

// Stores many lines past the caches, from any address.
void stream_lines(const unsigned char* from, std::size_t lines, unsigned char* to) {
  for (std::size_t i = 0; i < lines; ++i) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to) + i, _mm512_loadu_si512(from + i * kLineBytes));
#else
    alignas(kLineBytes) unsigned char line[kLineBytes];
    std::memcpy(line, from + i * kLineBytes, kLineBytes);
    stream_line(line, to + i * kLineBytes);
#endif
  }
}

void store_bytes(const void* from, std::size_t bytes, void* to, Store store) {
  const auto* source = static_cast<const unsigned char*>(from);
  auto* target = static_cast<unsigned char*>(to);
  if (store == Store::kStream && bytes >= 4 * kLineBytes) {
    const std::size_t head = (kLineBytes - reinterpret_cast<std::uintptr_t>(target) % kLineBytes) % kLineBytes;
    std::memcpy(target, source, head);
    const std::size_t lines = (bytes - head) / kLineBytes;
    stream_lines(source + head, lines, target + head);
    const std::size_t done = head + lines * kLineBytes;
    source += done;
    target += done;
    bytes -= done;
  }
  std::memcpy(target, source, bytes);
}

void copy(const void* from, std::size_t bytes, void* to, Store store) {
  store_bytes(from, bytes, to, store);
  if (store == Store::kStream) end_streaming();
}

}  // namespace
}  // namespace ringlet::kernels
