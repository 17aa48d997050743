// The number of cores that the CPU quotas of this process allow.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace ringlet::sync {

// Returns the text of a file, nothing if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

inline constexpr int kNoQuota = std::numeric_limits<int>::max();

// How many cores the CPU quotas of the control groups of this process, and of those above them, let it keep busy all
// the time: rounded down, because a rank that spins takes a whole one, but at least 1. devices/cores.py reads the same
// files; it rounds up, for replicas that compute.
int quota_cores(const ReadFile& read);
int quota_cores();  // of this process

}  // namespace ringlet::sync
