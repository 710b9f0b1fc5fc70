// SPDX-License-Identifier: Apache-2.0
// Completes what DPDK's AF_XDP driver (net_af_xdp) leaves undone. The driver does not count frames that met a full
// ring, it keeps the default send buffer of its sockets, and its XDP program stays on the interface when the process is
// killed.
#pragma once

#include <cstdint>
#include <vector>

namespace dutperf {

// Makes the driver attach its program directly, as the only one; to be called before it does. A dispatcher for several
// programs would be pinned in the file system and outlive the process.
void attach_xdp_directly();

// Takes the program off an interface that the driver of an engine left there which was killed. Returns whether it did:
// not if the program is not the driver's, or a process has it or one of its maps open. For that, all processes are
// looked at; it is not done where this process may not.
bool remove_left_program(unsigned interface_index);

// AF_XDP sockets of this process. The driver does not expose them, so they are looked up among the open files.
std::vector<int> xdp_sockets();

// The sockets and the program of one port. Exists from the start of the port until just before it is closed.
class XdpPort {
public:
    // `before`: the sockets of ports that were opened earlier.
    XdpPort(unsigned interface_index, const std::vector<int>& before);
    ~XdpPort();
    XdpPort(const XdpPort&) = delete;
    XdpPort& operator=(const XdpPort&) = delete;

    // Frames that the kernel dropped since the port was made because a receive ring was full (XDP_STATISTICS,
    // rx_ring_full).
    [[nodiscard]] std::uint64_t ring_full() const;

private:
    std::vector<int> sockets_;
    int link_ = -1;
};

// A program on a veth that passes every frame on, for ports that do not use AF_XDP. With a program a veth receives by
// NAPI, in a queue of its own; otherwise frames to the tester and frames to the DUT share a queue of the core, and an
// overloaded DUT makes the tester lose frames. The program ends with the process.
class PassingProgram {
public:
    explicit PassingProgram(unsigned interface_index) : interface_index_(interface_index) { attach(); }
    ~PassingProgram() { take_off(); }
    PassingProgram(const PassingProgram&) = delete;
    PassingProgram& operator=(const PassingProgram&) = delete;

    void attach();
    void take_off();

private:
    unsigned interface_index_;
    int link_ = -1;  // -1: taken off, or the kernel did not take it, or the interface has a program
};

// While it lives, a port's passing program is off. With a program a veth copies each frame before the kernel stamps its
// arrival: 0.7 us, and 10 us or more when no page is at hand.
class WithoutProgram {
public:
    explicit WithoutProgram(PassingProgram* program) : program_(program) {
        if (program_ != nullptr) program_->take_off();
    }
    ~WithoutProgram() {
        if (program_ != nullptr) program_->attach();
    }
    WithoutProgram(const WithoutProgram&) = delete;
    WithoutProgram& operator=(const WithoutProgram&) = delete;

private:
    PassingProgram* program_;
};

}  // namespace dutperf
