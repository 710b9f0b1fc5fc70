// SPDX-License-Identifier: Apache-2.0
#include "port/pci_device.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace dutperf {

namespace fs = std::filesystem;

namespace {

// Kernel drivers that share the card with DPDK's driver.
constexpr std::array<std::string_view, 3> kSharing{"mlx4_core", "mlx5_core", "mana"};
// Drivers that hand the card to a process.
constexpr std::array<std::string_view, 3> kForProcesses{"vfio-pci", "igb_uio", "uio_pci_generic"};

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

std::string first_line(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

// The file name of a link's target; empty if there is none.
std::string target_name(const fs::path& link) {
    std::error_code error;
    return fs::read_symlink(link, error).filename().string();
}

std::string interfaces_of(const fs::path& device) {
    std::string names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(device / "net", error))
        names += (names.empty() ? "" : ", ") + entry.path().filename().string();
    return names;
}

constexpr const char* kTurnOnIommu =
    ": turn on the IOMMU in the firmware and on the kernel's command line (intel_iommu=on), see dutperf doctor";

// vfio-pci accepts no card without an IOMMU group, so the advice to bind it would not help.
std::string without_driver(const std::string& address, const std::string& group) {
    if (!group.empty())
        return "no driver is bound to the PCI device " + address + ": bind it to vfio-pci (dutperf ports bind " +
               address + ")";
    return "no driver is bound to the PCI device " + address +
           ", and it has no IOMMU group, without which vfio-pci takes no card" + kTurnOnIommu;
}

std::optional<std::string> obstacle_of_group(const std::string& address, const std::string& group,
                                             const KernelFiles& files) {
    if (group.empty()) return "the PCI device " + address + " has no IOMMU group" + kTurnOnIommu;
    const bool unprotected = first_line(fs::path(files.sys) / "kernel/iommu_groups" / group / "name") == "vfio-noiommu";
    const std::string file = files.dev + "/vfio/" + (unprotected ? "noiommu-" : "") + group;
    const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return std::nullopt;
    }
    if (errno == EBUSY)
        return "the PCI device " + address + " (or another one of its IOMMU group " + group +
               ") is in use by another program";
    if (errno == EACCES || errno == EPERM) return "the PCI device " + address + " needs root, or access to " + file;
    return "the PCI device " + address + " is bound to vfio-pci, but " + file +
           " cannot be opened: " + std::strerror(errno);
}

std::optional<int> number_in(const fs::path& file) {
    std::ifstream in(file);
    int number = -1;
    return in >> number && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

bool has_pci_device(const std::string& address, const KernelFiles& files) {
    return fs::exists(fs::path(files.sys) / "bus/pci/devices" / address);
}

std::optional<std::string> obstacle_of_pci_device(const std::string& address, const KernelFiles& files) {
    const fs::path device = fs::path(files.sys) / "bus/pci/devices" / address;
    if (!has_pci_device(address, files))
        return "there is no PCI device " + address + " on this machine: dutperf ports lists those that there are";
    if (!first_line(device / "class").starts_with("0x02"))
        return "the PCI device " + address + " is not a network card";
    const std::string driver = target_name(device / "driver"), group = target_name(device / "iommu_group");
    if (driver.empty()) return without_driver(address, group);
    if (driver == "vfio-pci") return obstacle_of_group(address, group, files);
    if (is_among(kForProcesses, driver) || is_among(kSharing, driver)) return std::nullopt;
    const std::string names = interfaces_of(device);
    return "the PCI device " + address + " is in use by the kernel (driver " + driver +
           (names.empty() ? "" : ", interface " + names) + "): bind it to vfio-pci (dutperf ports bind " + address +
           ")";
}

bool has_iommu_group(const std::string& address, const KernelFiles& files) {
    return fs::exists(fs::path(files.sys) / "bus/pci/devices" / address / "iommu_group");
}

std::optional<int> numa_node_of_pci_device(const std::string& address, const KernelFiles& files) {
    return number_in(fs::path(files.sys) / "bus/pci/devices" / address / "numa_node");
}

std::optional<int> numa_node_of_core(unsigned core, const KernelFiles& files) {
    std::error_code error;
    for (const auto& entry :
         fs::directory_iterator(fs::path(files.sys) / "devices/system/cpu" / ("cpu" + std::to_string(core)), error)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("node") && name.size() > 4 &&
            std::ranges::all_of(name.substr(4), [](char c) { return c >= '0' && c <= '9'; })) {
            return std::stoi(name.substr(4));
        }
    }
    return std::nullopt;
}

}  // namespace dutperf
