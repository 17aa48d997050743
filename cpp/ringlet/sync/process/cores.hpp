// The number of cores that the CPU quotas of this process allow.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace ringlet::sync {

// Returns the text of a file; nothing if it cannot be read.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

inline constexpr int kNoQuota = std::numeric_limits<int>::max();

// The number of cores that the CPU quotas of this process's control groups and their ancestors allow: rounded down,
// because a spinning rank uses a whole core, but at least 1. devices/cores.py reads the same files but rounds up, for
// replicas that compute.
int quota_cores(const ReadFile& read);
int quota_cores();  // from the files of this process

}  // namespace ringlet::sync
