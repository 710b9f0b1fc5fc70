// SPDX-License-Identifier: Apache-2.0
// Why a card cannot be used, from the kernel's files: each test writes a machine's files into a folder.
#include "port/pci_device.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace dutperf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCard = "0000:3b:00.0";

class Machine : public testing::Test {
protected:
    Machine() : root_(fs::temp_directory_path() / ("dutperf_pci_" + std::to_string(getpid()))) {
        fs::create_directories(root_);
    }
    ~Machine() override { fs::remove_all(root_); }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    [[nodiscard]] KernelFiles files() const { return {.sys = root_ / "sys", .dev = root_ / "dev"}; }
    [[nodiscard]] fs::path card() const { return root_ / "sys/bus/pci/devices" / kCard; }

    void has_card(const std::string& driver, const std::string& group = {},
                  const std::string& kind = "0x020000") const {
        write(card() / "class", kind);
        if (!driver.empty()) link(card() / "driver", "bus/pci/drivers/" + driver);
        if (!group.empty()) link(card() / "iommu_group", "kernel/iommu_groups/" + group);
    }
    static void write(const fs::path& file, const std::string& line) {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << line << '\n';
    }
    void link(const fs::path& from, const std::string& to) const {
        fs::create_directories(root_ / "sys" / to);
        fs::create_directories(from.parent_path());
        fs::create_directory_symlink(root_ / "sys" / to, from);
    }
    [[nodiscard]] std::string obstacle() const { return obstacle_of_pci_device(kCard, files()).value_or("none"); }
    void expect(const std::string& part) const { EXPECT_NE(obstacle().find(part), std::string::npos) << obstacle(); }

    fs::path root_;
};

TEST_F(Machine, WithoutTheCard) {
    expect("there is no PCI device 0000:3b:00.0");
    EXPECT_FALSE(has_pci_device(kCard, files()));
}

TEST_F(Machine, WhoseDeviceIsNotANetworkCard) {
    has_card("nvme", "", "0x010802");
    expect("is not a network card");
}

TEST_F(Machine, WhoseCardNoDriverHas) {
    has_card("", "7");
    expect("no driver is bound to the PCI device 0000:3b:00.0: bind it to vfio-pci (dutperf ports bind 0000:3b:00.0)");
}

TEST_F(Machine, WhoseCardNoDriverHasAndNoneCouldTake) {
    has_card("");
    expect("no driver is bound to the PCI device 0000:3b:00.0, and it has no IOMMU group");
    expect("turn on the IOMMU");
}

TEST_F(Machine, WhoseKernelUsesTheCard) {
    has_card("ixgbe");
    fs::create_directories(card() / "net/eth4");
    expect("is in use by the kernel (driver ixgbe, interface eth4): bind it");
}

TEST_F(Machine, WhoseKernelSharesTheCard) {
    has_card("mlx5_core");
    EXPECT_EQ(obstacle(), "none");
}

TEST_F(Machine, WithoutAnIommu) {
    has_card("vfio-pci");
    expect("has no IOMMU group");
}

TEST_F(Machine, WhoseGroupCanBeOpened) {
    has_card("vfio-pci", "7");
    write(root_ / "dev/vfio/7", "");
    EXPECT_EQ(obstacle(), "none");
}

TEST_F(Machine, WhoseGroupHasNoFile) {
    has_card("vfio-pci", "7");
    expect("cannot be opened: No such file");
}

TEST_F(Machine, WithoutAnIommuOnPurpose) {
    has_card("vfio-pci", "0");
    write(root_ / "sys/kernel/iommu_groups/0/name", "vfio-noiommu");
    write(root_ / "dev/vfio/noiommu-0", "");
    EXPECT_EQ(obstacle(), "none");
}

TEST_F(Machine, OfTwoNodes) {
    has_card("vfio-pci", "7");
    write(card() / "numa_node", "1");
    fs::create_directories(root_ / "sys/devices/system/cpu/cpu3/node1");
    fs::create_directories(root_ / "sys/devices/system/cpu/cpu2/topology");
    EXPECT_EQ(numa_node_of_pci_device(kCard, files()), 1);
    EXPECT_EQ(numa_node_of_core(3, files()), 1);
    EXPECT_EQ(numa_node_of_core(2, files()), std::nullopt);
}

TEST_F(Machine, OfOneNode) {
    has_card("vfio-pci", "7");
    write(card() / "numa_node", "-1");
    EXPECT_EQ(numa_node_of_pci_device(kCard, files()), std::nullopt);
}

}  // namespace
}  // namespace dutperf
