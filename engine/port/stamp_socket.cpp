// SPDX-License-Identifier: Apache-2.0
#include "port/stamp_socket.hpp"

#include <linux/errqueue.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "frame/layout.hpp"
#include "frame/tag.hpp"
#include "platform/error.hpp"
#include "port/ethtool.hpp"
#include "port/neighbour.hpp"
#include "port/own_sockets.hpp"
#include "port/port_spec.hpp"

namespace dutperf {

namespace {

constexpr unsigned kSends = SOF_TIMESTAMPING_TX_SOFTWARE, kReceives = SOF_TIMESTAMPING_RX_SOFTWARE;

// What is asked of the kernel (SOF_TIMESTAMPING_…), and which of its three times is the stamp.
struct Wishes {
    unsigned sent, received;
    std::size_t time;
};
constexpr Wishes wishes(StampedBy by) {
    if (by == StampedBy::kernel) return {kSends, kReceives | SOF_TIMESTAMPING_SOFTWARE, 0};
    return {SOF_TIMESTAMPING_TX_HARDWARE, SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE, 2};
}

constexpr std::size_t kLongest = std::size_t{1} << 16U;
constexpr std::int64_t kNsPerS = 1'000'000'000;

// Tags up to here are found, behind headers of an even length.
constexpr std::uint32_t kLastTagAt = 220;
// A jump of the program reaches 255 instructions.
constexpr std::uint32_t kAtATime = 40;

std::int64_t ns_of(const timespec& time) { return std::int64_t{time.tv_sec} * kNsPerS + time.tv_nsec; }

// The stamp's highest byte is left out: the others are 0 once in 2^32 frames.
constexpr std::uint32_t kStampAt = tag::kLowAt - 2;

sock_filter one(unsigned code, std::uint32_t k, unsigned yes = 0, unsigned no = 0) {
    return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(yes), static_cast<std::uint8_t>(no), k};
}

// Keeps frames with a tag and a stamp so many bytes before their end; others go on behind this.
void append_tag_from_end(std::vector<sock_filter>& program, std::uint16_t from_end) {
    program.insert(program.end(),
                   {one(BPF_LD | BPF_W | BPF_LEN, 0), one(BPF_JMP | BPF_JGE | BPF_K, from_end, 0, 8),
                    one(BPF_ALU | BPF_SUB | BPF_K, from_end), one(BPF_MISC | BPF_TAX, 0),
                    one(BPF_LD | BPF_W | BPF_IND, 0), one(BPF_ALU | BPF_RSH | BPF_K, 8),
                    one(BPF_JMP | BPF_JEQ | BPF_K, kSignature, 0, 3), one(BPF_LD | BPF_W | BPF_IND, kStampAt),
                    one(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), one(BPF_RET | BPF_K, kLongest)});
}

// Keeps frames that have the signature of a tag somewhere, with a stamp behind it. A load beyond the frame's end ends
// the program: the frame is not kept. A shorter way to say it would be longer for the kernel, whose limit
// (net.core.optmem_max) was 20 KiB up to Linux 6.6.
std::vector<sock_filter> program(std::span<const std::uint16_t> tags_from_end) {
    constexpr std::uint32_t kStep = 4;
    std::vector<sock_filter> program;
    for (const std::uint16_t from_end : tags_from_end) append_tag_from_end(program, from_end);
    for (auto at = static_cast<std::uint32_t>(kEthernetPayloadAt); at <= kLastTagAt;) {
        for (std::uint32_t left = kAtATime; left-- > 0; at += 2) {
            program.push_back(one(BPF_LDX | BPF_IMM, at));
            program.push_back(one(BPF_LD | BPF_W | BPF_ABS, at));
            program.push_back(one(BPF_ALU | BPF_RSH | BPF_K, 8));
            program.push_back(one(BPF_JMP | BPF_JEQ | BPF_K, kSignature, kStep * left + 1, 0));
        }
        program.push_back(one(BPF_JMP | BPF_JA, 4));
        program.push_back(one(BPF_LD | BPF_W | BPF_IND, kStampAt));
        program.push_back(one(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
        program.push_back(one(BPF_RET | BPF_K, 0));
        program.push_back(one(BPF_RET | BPF_K, kLongest));
    }
    program.push_back(one(BPF_RET | BPF_K, 0));
    return program;
}

}  // namespace

// The stamp of a message; nothing if it has none.
std::optional<std::int64_t> StampSocket::stamp_of(const msghdr& message) const {
    for (const cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr;
         one = CMSG_NXTHDR(const_cast<msghdr*>(&message), const_cast<cmsghdr*>(one))) {
        if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_TIMESTAMPING) continue;
        scm_timestamping stamps{};
        std::memcpy(&stamps, CMSG_DATA(one), sizeof stamps);
        const std::int64_t stamp = ns_of(stamps.ts[wishes(by_).time]);
        if (stamp != 0) return stamp;
    }
    return std::nullopt;
}

void require_stamps(const std::string& interface, const std::string& side) {
    ethtool_ts_info info{};
    info.cmd = ETHTOOL_GET_TS_INFO;
    const unsigned stamped = ask_ethtool(interface, &info) ? info.so_timestamping : 0;
    if ((stamped & kSends) != 0 && (stamped & kReceives) != 0) return;
    throw Error("port_unavailable",
                "the driver of " + interface + ", " + the_port(side) + ", lets the kernel stamp no " +
                    ((stamped & kSends) == 0 ? "sent" : "received") + " frames: leave stamps at loop",
                "params.stamps");
}

struct StampSocket::Room {
    static constexpr unsigned kFrames = 64;
    static constexpr std::size_t kControl = 256;

    // Pages that no frame reaches are never touched.
    std::unique_ptr<std::uint8_t[]> bytes = std::make_unique_for_overwrite<std::uint8_t[]>(kFrames * kLongest);
    alignas(cmsghdr) std::array<std::array<char, kControl>, kFrames> control{};
    std::array<iovec, kFrames> places{};
    std::array<mmsghdr, kFrames> messages{};

    // The kernel wrote over what it was given.
    void clear() {
        for (std::size_t i = 0; i < kFrames; ++i) {
            places[i] = {&bytes[i * kLongest], kLongest};
            messages[i].msg_hdr = {};
            messages[i].msg_hdr.msg_iov = &places[i];
            messages[i].msg_hdr.msg_iovlen = 1;
            messages[i].msg_hdr.msg_control = control[i].data();
            messages[i].msg_hdr.msg_controllen = control[i].size();
        }
    }
};

StampSocket::StampSocket(StampedBy by, const std::string& side)
    : by_(by),
      fd_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      side_(side),
      room_(std::make_unique<Room>()) {}

StampSocket::StampSocket(StampedBy by, unsigned interface_index, const std::string& side,
                         std::span<const std::uint16_t> tags_from_end)
    : StampSocket(by, side) {
    constexpr int kYes = 1, kBuffer = 256 * 1024 * 1024;
    const std::vector<sock_filter> filter = program(tags_from_end);
    const sock_fprog attached{.len = static_cast<unsigned short>(filter.size()),
                              .filter = const_cast<sock_filter*>(filter.data())};
    set(SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached);
    set(SOL_PACKET, PACKET_IGNORE_OUTGOING, &kYes, sizeof kYes);
    set(SOL_PACKET, PACKET_QDISC_BYPASS, &kYes, sizeof kYes);
    const unsigned stamps = wishes(by).received;
    set(SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
    if (setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer) != 0)
        set(SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof kBuffer);
    widen_send_buffer(fd_);
    sockaddr_ll address{};  // only now: no other frame gets in
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(interface_index);
    require(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

StampSocket::~StampSocket() { close(fd_); }

void StampSocket::require(bool done) const {
    if (done) return;
    throw Error("port_unavailable",
                "the kernel refuses a packet socket with time stamps on " + the_port(side_) + " (" +
                    std::strerror(errno) + "): leave stamps at loop",
                "params.stamps");
}

void StampSocket::set(int level, int name, const void* value, unsigned size) const {
    require(setsockopt(fd_, level, name, value, size) == 0);
}

bool StampSocket::send(const std::uint8_t* frame, std::size_t length) {
    iovec bytes{const_cast<std::uint8_t*>(frame), length};
    const unsigned wish = wishes(by_).sent;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof wish)> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* wanted = CMSG_FIRSTHDR(&message);
    wanted->cmsg_level = SOL_SOCKET;
    wanted->cmsg_type = SO_TIMESTAMPING;
    wanted->cmsg_len = CMSG_LEN(sizeof wish);
    std::memcpy(CMSG_DATA(wanted), &wish, sizeof wish);
    return sendmsg(fd_, &message, MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

bool StampSocket::stamps_frames(const Mac& from, const Mac& to) {
    constexpr int kPatienceMs = 200;
    Host prober;
    prober.mac = from;
    FrameBytes frame = address_probe(prober, ip_of(Ipv4{}));
    std::ranges::copy(to, frame.begin() + ethernet::kDestination);
    if (!send(frame.data(), frame.size())) return false;
    pollfd waiting{.fd = fd_, .events = 0, .revents = 0};  // POLLERR comes unasked
    poll(&waiting, 1, kPatienceMs);
    bool stamped = false;
    take_some(MSG_ERRQUEUE, [&](auto, auto) { stamped = true; });
    return stamped;
}

bool StampSocket::take_some(int flags, const Visit& visit) {
    room_->clear();
    const int taken = recvmmsg(fd_, room_->messages.data(), Room::kFrames, flags | MSG_DONTWAIT, nullptr);
    for (int i = 0; i < taken; ++i) {
        const mmsghdr& one = room_->messages[static_cast<std::size_t>(i)];
        const auto* frame = static_cast<const std::uint8_t*>(one.msg_hdr.msg_iov->iov_base);
        if (const auto stamp = stamp_of(one.msg_hdr)) visit({frame, one.msg_len}, *stamp);
    }
    return taken == static_cast<int>(Room::kFrames) || (taken < 0 && errno != EAGAIN);  // the link's end comes once
}

bool StampSocket::take(const Visit& left, const Visit& arrived) {
    const bool more = take_some(MSG_ERRQUEUE, left);
    return take_some(0, arrived) || more;
}

}  // namespace dutperf
