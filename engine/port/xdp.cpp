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
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/processes.hpp"
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

struct Program {
    std::string name;
    std::vector<std::string> lines;  // of the kernel's about open files (proc(5), fdinfo): of itself and its maps
};

std::optional<Program> about_program(int program) {
    constexpr std::uint32_t kMaps = 16;
    std::array<std::uint32_t, kMaps> maps{};
    bpf_prog_info info{};
    info.nr_map_ids = kMaps;
    info.map_ids = reinterpret_cast<std::uintptr_t>(maps.data());
    std::uint32_t length = sizeof info;
    if (bpf_obj_get_info_by_fd(program, &info, &length) != 0 || info.nr_map_ids > kMaps) return std::nullopt;
    Program about{.name = info.name, .lines = {"prog_id:\t" + std::to_string(info.id)}};
    for (std::uint32_t i = 0; i < info.nr_map_ids; ++i) about.lines.push_back("map_id:\t" + std::to_string(maps[i]));
    return about;
}

// By what the kernel calls the files of programs, maps and links. A process that ends meanwhile has nothing open.
bool has_open(const std::filesystem::path& process, const std::vector<std::string>& lines) {
    for (const auto& file : std::filesystem::directory_iterator(process / "fd")) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(file.path(), gone).string();
        if (gone || !target.starts_with("anon_inode:bpf")) continue;
        std::ifstream about(process / "fdinfo" / file.path().filename());
        for (std::string line; std::getline(about, line);) {
            if (std::ranges::find(lines, line) != lines.end()) return true;
        }
    }
    return false;
}

bool is_in_use(const Program& program) {
    for (const auto& process : other_processes()) {
        try {
            if (has_open(process, program.lines)) return true;
        } catch (const std::filesystem::filesystem_error& error) {
            if (error.code() == std::errc::permission_denied) return true;
        }
    }
    return false;
}

// libxdp's and, before it, libbpf's for sockets without a program of their own.
bool is_drivers(const Program& program) { return program.name == "xsk_def_prog" || program.name == "xdp_sock_prog"; }

}  // namespace

bool remove_left_program(unsigned interface_index) {
    const auto index = static_cast<int>(interface_index);
    std::uint32_t number = 0;
    if (bpf_xdp_query_id(index, 0, &number) != 0 || number == 0) return false;
    const int program = bpf_prog_get_fd_by_id(number);
    if (program < 0) return false;
    const auto about = about_program(program);
    LIBBPF_OPTS(bpf_xdp_attach_opts, only_this, .old_prog_fd = program);
    const bool removed = about && is_drivers(*about) && !is_in_use(*about) && bpf_xdp_detach(index, 0, &only_this) == 0;
    close(program);
    return removed;
}

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

void PassingProgram::attach() {
    const int program = load_passing_program();
    if (program < 0) return;
    link_ = bpf_link_create(program, static_cast<int>(interface_index_), BPF_XDP, nullptr);
    close(program);
}

void PassingProgram::take_off() {
    if (link_ >= 0) close(link_);
    link_ = -1;
}

}  // namespace dutperf
