#include "ringlet/sync/process/cores.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace ringlet::sync {

namespace {

constexpr std::string_view kRoot = "/sys/fs/cgroup";

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> buffers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) buffers.push_back(part);
  return buffers;
}

// A group and its ancestors, as folders. In a container, the root is the container's group, regardless of the path in
// /proc.
std::vector<std::string> folders_upwards(const std::string& group) {
  std::vector<std::string> folders{""};
  for (const std::string& part : parts_of(group, '/')) {
    if (!part.empty() && part != "." && part != "..") folders.push_back(folders.back() + '/' + part);
  }
  return folders;
}

// No quota is "max" in version 2 and -1 in version 1.
int cores_of(const std::string& quota_and_period) {
  std::istringstream stream(quota_and_period);
  double quota = 0;
  double period = 0;
  if (!(stream >> quota >> period) || quota < 0 || period <= 0 || quota / period >= kNoQuota) return kNoQuota;
  return std::max(1, static_cast<int>(quota / period));
}

int quota_of_version_2(const ReadFile& read, const std::string& folder) {
  return cores_of(read(std::string(kRoot) + folder + "/cpu.max").value_or(""));
}

int quota_of_version_1(const ReadFile& read, const std::string& controllers, const std::string& folder) {
  for (const std::string& mount : {controllers, std::string("cpu"), std::string("cpu,cpuacct")}) {
    const std::string path = std::string(kRoot) + '/' + mount + folder;
    const auto quota = read(path + "/cpu.cfs_quota_us");
    if (quota) return cores_of(*quota + ' ' + read(path + "/cpu.cfs_period_us").value_or(""));
  }
  return kNoQuota;
}

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

// Each line of the file is hierarchy:controllers:path, without controllers in version 2: "0::/path".
int quota_cores(const ReadFile& read) {
  int cores = kNoQuota;
  for (const std::string& line : parts_of(read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = parts_of(controllers, ',');
    if (!names.empty() && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    for (const std::string& folder : folders_upwards(line.substr(second + 1))) {
      cores = std::min(
          cores, names.empty() ? quota_of_version_2(read, folder) : quota_of_version_1(read, controllers, folder));
    }
  }
  return cores;
}

int quota_cores() {
  static const int kCores = quota_cores(read_file);
  return kCores;
}

}  // namespace ringlet::sync
