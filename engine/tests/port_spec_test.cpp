// SPDX-License-Identifier: Apache-2.0
// Parses the user's port names into those of DPDK and the kernel.
#include "port/port_spec.hpp"

#include <gtest/gtest.h>

#include <array>

#include "platform/error.hpp"

namespace dutperf {
namespace {

using Kind = PortSpec::Kind;

struct Row {
    std::string text;
    Kind kind;
    std::string argument, devargs;
    bool does_dma;
};

const std::array kRows{
    Row{"0000:01:00.0", Kind::pci, "0000:01:00.0", "", true},
    Row{"01:00.0", Kind::pci, "0000:01:00.0", "", true},
    Row{"0000:AF:00.1", Kind::pci, "0000:af:00.1", "", true},
    Row{"10000:3B:00.0", Kind::pci, "10000:3b:00.0", "", true},
    Row{"0000:3b:00.0,dv_flow_en=0,txq_inline_max=0", Kind::pci, "0000:3b:00.0", "dv_flow_en=0,txq_inline_max=0", true},
    Row{"af_packet:eth1", Kind::af_packet, "eth1", "", false},
    Row{"af_xdp:eth1", Kind::af_xdp, "eth1", "", false},
    Row{"virtio_user:/run/switch/p0", Kind::virtio_user, "/run/switch/p0", "", false},
    Row{"virtio_user:/run/p0,server=1,packed_vq=1", Kind::virtio_user, "/run/p0", "server=1,packed_vq=1", false},
    Row{"vhost_user:/run/p0", Kind::vhost_user, "/run/p0", "", false},
    Row{"memif:/run/vpp/memif.sock,id=1", Kind::memif, "/run/vpp/memif.sock", "id=1", false},
    Row{"eth1", Kind::kernel, "eth1", "", false},
    Row{"ring0", Kind::kernel, "ring0", "", false},
    Row{"ring", Kind::ring, "", "", false},
    Row{"null", Kind::null, "", "", false},
    Row{"vdev:net_pcap0,rx_pcap=a.pcap", Kind::vdev, "net_pcap0,rx_pcap=a.pcap", "", false},
    Row{"vdev:net_bonding0,slave=0000:01:00.0", Kind::vdev, "net_bonding0,slave=0000:01:00.0", "", true},
};

TEST(PortSpec, ParsesByTheTable) {
    for (const Row& row : kRows) {
        const PortSpec spec = parse_port_spec(row.text, "left.port");
        EXPECT_EQ(spec.kind, row.kind) << row.text;
        EXPECT_EQ(spec.argument, row.argument) << row.text;
        EXPECT_EQ(spec.devargs, row.devargs) << row.text;
        EXPECT_EQ(spec.does_dma(), row.does_dma) << row.text;
    }
}

TEST(PortSpec, TellsWhichPortsShareQueuesAndMemoryWithAnotherProcess) {
    const std::string longest = "/" + std::string(106, 'a');
    EXPECT_TRUE(parse_port_spec("memif:" + longest, "left.port").uses_socket());
    EXPECT_THROW((void)parse_port_spec("memif:" + longest + "a", "left.port"), Error);
    EXPECT_FALSE(parse_port_spec("ring", "left.port").uses_socket());
    EXPECT_TRUE(parse_port_spec("virtio_user:/run/p0", "left.port").shares_memory());
    EXPECT_TRUE(parse_port_spec("vdev:net_virtio_user0,path=/run/p0", "left.port").shares_memory());
    EXPECT_FALSE(parse_port_spec("vhost_user:/run/p0", "left.port").shares_memory());
}

TEST(PortSpec, GivesDpdkTheArgumentsOfACardsDriver) {
    EXPECT_EQ(parse_port_spec("3B:00.0", "left.port").device_name(), "0000:3b:00.0");
    EXPECT_EQ(parse_port_spec("3b:00.0,a=1", "left.port").device_name(), "0000:3b:00.0,a=1");
}

TEST(PortSpec, RejectsWhatIsNotAPort) {
    for (const char* const text :
         {"", "eth 1", "0000:01:00", "0000:01:00.8", "01:00.0,", "af_xdp:", "af_packet:", "vdev:", "eth0,eth1",
          "sixteen_letters_", "000:01:00.0", "memif:", "memif:p0", "vhost_user:/run/p0,", "virtio_user:,server=1"}) {
        EXPECT_THROW((void)parse_port_spec(text, "left.port"), Error) << text;
    }
}

TEST(ThePort, HasItsNameInASentence) {
    EXPECT_EQ(the_port("left"), "the left port");
    EXPECT_EQ(the_port("a"), "port a");
}

}  // namespace
}  // namespace dutperf
