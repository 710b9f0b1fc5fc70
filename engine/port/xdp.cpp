// SPDX-License-Identifier: Apache-2.0
#include "port/xdp.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "port/own_sockets.hpp"

namespace dutperf {

namespace {

bool is_xdp_socket(int fd) {
    int domain = 0;
    socklen_t length = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_XDP;
}

// Re-attaches the interface's program by a BPF link, which ends with the process. Returns -1 if the kernel has no such
// links; the program then stays as it was.
int attach_by_link(int interface_index) {
    std::uint32_t number = 0;
    if (bpf_xdp_query_id(interface_index, 0, &number) != 0 || number == 0) return -1;
    const int program = bpf_prog_get_fd_by_id(number);
    if (program < 0) return -1;
    int link = -1;
    if (bpf_xdp_detach(interface_index, 0, nullptr) == 0) {
        link = bpf_link_create(program, interface_index, BPF_XDP, nullptr);
        if (link < 0) bpf_xdp_attach(interface_index, program, 0, nullptr);
    }
    close(program);
    return link;
}

// r0 = XDP_PASS; exit
int load_passing_program() {
    constexpr std::array kInstructions{bpf_insn{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS},
                                       bpf_insn{BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
    LIBBPF_OPTS(bpf_prog_load_opts, options, .prog_flags = BPF_F_XDP_HAS_FRAGS);  // else frames fit into a page
    return bpf_prog_load(BPF_PROG_TYPE_XDP, "dutperf_pass", "Dual MIT/GPL", kInstructions.data(), kInstructions.size(),
                         &options);
}

}  // namespace

void attach_xdp_directly() {
    setenv("LIBXDP_SKIP_DISPATCHER", "1", 1);
    libbpf_set_print([](libbpf_print_level level, const char* format, va_list values) {
        return level == LIBBPF_WARN ? std::vfprintf(stderr, format, values) : 0;
    });
}

std::vector<int> xdp_sockets() { return own_sockets(is_xdp_socket); }

XdpPort::XdpPort(unsigned interface_index, const std::vector<int>& before) {
    std::ranges::copy_if(xdp_sockets(), std::back_inserter(sockets_),
                         [&](int fd) { return std::ranges::find(before, fd) == before.end(); });
    std::ranges::for_each(sockets_, widen_send_buffer);  // else the kernel would slow the tester down
    link_ = attach_by_link(static_cast<int>(interface_index));
}

XdpPort::~XdpPort() {
    if (link_ >= 0) close(link_);
}

std::uint64_t XdpPort::ring_full() const {
    std::uint64_t frames = 0;
    for (const int fd : sockets_) {
        xdp_statistics statistics{};
        socklen_t length = sizeof statistics;
        if (getsockopt(fd, SOL_XDP, XDP_STATISTICS, &statistics, &length) == 0) frames += statistics.rx_ring_full;
    }
    return frames;
}

PassingProgram::PassingProgram(unsigned interface_index) {
    const int program = load_passing_program();
    if (program < 0) return;
    link_ = bpf_link_create(program, static_cast<int>(interface_index), BPF_XDP, nullptr);
    close(program);
}

PassingProgram::~PassingProgram() {
    if (link_ >= 0) close(link_);
}

}  // namespace dutperf
